// What a debugger, a log or `dump` shows of values that hold a URL or a password: none of the caller's secrets
// (security 81). Userinfo, query and fragment are left out.

extension Request: CustomReflectable {
    /// Without userinfo and query of its URL.
    public var customMirror: Mirror {
        Mirror(self, children: ["method": method, "url": url.withoutSecrets, "headers": headers, "hasBody": body != nil])
    }
}

extension Response: CustomReflectable {
    /// Without userinfo and query of its URL.
    public var customMirror: Mirror {
        Mirror(self, children: ["url": url.withoutSecrets, "status": http?.status as Any, "mediaType": mediaType as Any])
    }
}

extension LoadError: CustomReflectable {
    /// Without userinfo and query of its URL.
    public var customMirror: Mirror {
        Mirror(self, children: [
            "reason": reason, "phase": phase, "party": party, "url": url?.withoutSecrets as Any, "detail": detail as Any,
            "underlying": underlying as Any,
        ])
    }
}

extension Configuration.FTP: CustomReflectable {
    /// Without the account, which is a second password.
    public var customMirror: Mirror { Mirror(self, children: ["security": security]) }
}

// What sessions and tasks lead to, in a mirror that follows every reference.

extension Core: CustomReflectable {
    var customMirror: Mirror { Mirror(self, children: ["connections": pool.description]) }
}

extension Login: CustomReflectable {
    var customMirror: Mirror { Mirror(self, children: ["space": space]) }
}
