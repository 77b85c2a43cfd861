// SPDX-License-Identifier: Apache-2.0

// The callbacks of ngtcp2. Each finds the codec's collector in the user data, copies its arguments into it, and
// returns. Those of the handshake and of encryption are functions of ngtcp2's helper.

#if HTTP3

import URLLoadingCNgtcp2

enum QUICCallbacks {
    // Unsafe: set up once, and only read afterwards by ngtcp2, which copies them.
    nonisolated(unsafe) static var client: ngtcp2_callbacks = {
        var callbacks = common
        callbacks.client_initial = { ngtcp2_crypto_client_initial_cb($0, $1) }
        callbacks.recv_retry = { ngtcp2_crypto_recv_retry_cb($0, $1, $2) }
        return callbacks
    }()

    nonisolated(unsafe) static var server: ngtcp2_callbacks = {
        var callbacks = common
        callbacks.recv_client_initial = { ngtcp2_crypto_recv_client_initial_cb($0, $1, $2) }
        return callbacks
    }()

    private static var common: ngtcp2_callbacks {
        var callbacks = ngtcp2_callbacks()
        secure(&callbacks)
        callbacks.rand = { bytes, count, _ in
            guard let bytes else { return }
            UnsafeMutableRawBufferPointer(start: bytes, count: count).fillRandomly()
        }
        callbacks.get_new_connection_id = { _, id, token, count, _ in
            guard let id, let token else { return NGTCP2_ERR_CALLBACK_FAILURE }
            id.pointee = ngtcp2_cid(random: count)
            UnsafeMutableRawBufferPointer(start: token, count: Int(NGTCP2_STATELESS_RESET_TOKENLEN)).fillRandomly()
            return 0
        }
        callbacks.handshake_completed = { connection, context in
            guard let connection, let collector = collector(context) else { return NGTCP2_ERR_CALLBACK_FAILURE }
            return collector.completed(connection)
        }
        callbacks.handshake_confirmed = { _, context in
            collector(context)?.add(.handshakeConfirmed)
            return 0
        }
        callbacks.recv_stateless_reset = { _, _, context in
            collector(context)?.wasReset = true
            return 0
        }
        callbacks.recv_new_token = { _, bytes, count, context in
            if let collector = collector(context), let bytes, count <= collector.limits.tokenSize {
                collector.add(.token(Array(UnsafeBufferPointer(start: bytes, count: count))))
            }
            return 0
        }
        callbacks.path_validation = { _, _, path, _, result, context in
            if let path, let number = QUICPath.number(of: path.pointee) {
                collector(context)?.asked(
                    for: number, hasAnswered: result == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS)
            }
            return 0
        }
        callbacks.extend_max_local_streams_bidi = { _, _, context in
            collector(context)?.add(.streamsPermitted)
            return 0
        }
        addStreams(&callbacks)
        return callbacks
    }

    private static func addStreams(_ callbacks: inout ngtcp2_callbacks) {
        callbacks.recv_stream_data = { _, flags, stream, _, bytes, count, context, _ in
            collector(context)?.receive(
                UnsafeRawBufferPointer(start: bytes, count: count),
                isEnd: flags & UInt32(NGTCP2_STREAM_DATA_FLAG_FIN) != 0, on: stream)
            return 0
        }
        callbacks.acked_stream_data_offset = { _, stream, _, count, context, _ in
            collector(context)?.acknowledged(Int(clamping: count), on: stream)
            return 0
        }
        callbacks.stream_reset = { _, stream, _, code, context, _ in
            collector(context)?.add(.reset(stream, code))
            return 0
        }
        callbacks.extend_max_stream_data = { _, stream, _, context, _ in
            collector(context)?.add(.unblocked(stream))
            return 0
        }
        callbacks.stream_close = { connection, flags, stream, code, context, _ in
            guard let connection else { return NGTCP2_ERR_CALLBACK_FAILURE }
            let hasCode = flags & UInt32(NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET) != 0
            collector(context)?.closed(stream, hasCode ? code : nil, of: connection)
            return 0
        }
    }

    private static func secure(_ callbacks: inout ngtcp2_callbacks) {
        callbacks.recv_crypto_data = { ngtcp2_crypto_recv_crypto_data_cb($0, $1, $2, $3, $4, $5) }
        callbacks.encrypt = { ngtcp2_crypto_encrypt_cb($0, $1, $2, $3, $4, $5, $6, $7, $8) }
        callbacks.decrypt = { ngtcp2_crypto_decrypt_cb($0, $1, $2, $3, $4, $5, $6, $7, $8) }
        callbacks.hp_mask = { ngtcp2_crypto_hp_mask_cb($0, $1, $2, $3) }
        callbacks.update_key = { ngtcp2_crypto_update_key_cb($0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10) }
        callbacks.delete_crypto_aead_ctx = { ngtcp2_crypto_delete_crypto_aead_ctx_cb($0, $1, $2) }
        callbacks.delete_crypto_cipher_ctx = { ngtcp2_crypto_delete_crypto_cipher_ctx_cb($0, $1, $2) }
        callbacks.get_path_challenge_data = { ngtcp2_crypto_get_path_challenge_data_cb($0, $1, $2) }
        callbacks.version_negotiation = { ngtcp2_crypto_version_negotiation_cb($0, $1, $2, $3) }
    }

    /// Writes a record of the log.
    static let log: ngtcp2_qlog_write = { context, _, bytes, count in
        collector(context)?.log.add(UnsafeRawBufferPointer(start: bytes, count: bytes == nil ? 0 : count))
    }

    /// Fills one packet; called by ngtcp2 within `nextDatagrams`.
    static let write: ngtcp2_write_pkt = { connection, path, info, bytes, count, now, context in
        guard let connection, let collector = collector(context) else { return Int(NGTCP2_ERR_CALLBACK_FAILURE) }
        return collector.write(connection, path, info, bytes, count, now)
    }
}

private func collector(_ context: UnsafeMutableRawPointer?) -> QUICCollector? {
    context.map { Unmanaged<QUICCollector>.fromOpaque($0).takeUnretainedValue() }
}

extension ngtcp2_cid {
    init(random count: Int) {
        self.init()
        datalen = min(count, Int(NGTCP2_MAX_CIDLEN))
        withUnsafeMutableBytes(of: &data) {
            UnsafeMutableRawBufferPointer(rebasing: $0[..<min(count, $0.count)]).fillRandomly()
        }
    }
}

extension UnsafeMutableRawBufferPointer {
    /// Fills in random bytes of the system, eight with each system call.
    fileprivate func fillRandomly() {
        var generator = SystemRandomNumberGenerator()
        for start in stride(from: 0, to: count, by: 8) {
            withUnsafeBytes(of: generator.next()) {
                UnsafeMutableRawBufferPointer(rebasing: self[start..<Swift.min(start + 8, count)])
                    .copyMemory(from: UnsafeRawBufferPointer(rebasing: $0.prefix(count - start)))
            }
        }
    }
}

#endif
