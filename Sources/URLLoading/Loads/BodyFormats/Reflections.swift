// SPDX-License-Identifier: Apache-2.0

// The mirrors of values that hold a URL or a password, as debuggers, logs and `dump` show them. Userinfo, query and
// fragment are left out, and so are the values of a request's fields, because only the caller knows which are secret.

extension Request: CustomReflectable {
    /// The URL without userinfo and query, and the names of the fields without their values.
    public var customMirror: Mirror {
        let names = headers.map(\.name.description)
        return Mirror(
            self, children: ["method": method, "url": url.withoutSecrets, "headers": names, "hasBody": body != nil])
    }
}

extension Response: CustomReflectable {
    /// The URL without userinfo and query, the status and the media type.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["url": url.withoutSecrets, "status": http?.status as Any, "mediaType": mediaType as Any])
    }
}

extension LoadError: CustomReflectable {
    /// The error, with its URL without userinfo and query.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "reason": reason, "phase": phase, "party": party, "url": url?.withoutSecrets as Any,
                "detail": detail as Any,
                "underlying": underlying as Any,
            ])
    }
}

extension LoadMetrics.Transaction: CustomReflectable {
    /// The request and the response, each as its own mirror shows it.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "request": request, "response": response as Any, "fetchType": fetchType, "error": error as Any,
            ])
    }
}

extension ResumeToken: CustomReflectable {
    /// The description, whose URL has no userinfo and query.
    public var customMirror: Mirror { Mirror(self, children: ["token": description]) }
}

extension Configuration.FTP: CustomReflectable {
    /// The security mode only: the account is a second password.
    public var customMirror: Mirror { Mirror(self, children: ["security": security]) }
}

// Sessions and tasks refer to these objects, and a mirror that follows every reference would reach their secrets.

extension Core: CustomReflectable {
    var customMirror: Mirror { Mirror(self, children: ["connections": pool.description]) }
}

extension Login: CustomReflectable {
    var customMirror: Mirror { Mirror(self, children: ["space": space]) }
}
