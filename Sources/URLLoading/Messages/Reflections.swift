// What a debugger, a log or `dump` shows of values that hold a URL or a password: none of the caller's secrets
// (security 81). Userinfo, query and fragment are left out, and so are the values of a request's fields: which of them are
// secret their sender knows alone.

extension Request: CustomReflectable {
    /// Without userinfo and query of its URL, and with the names of its fields alone.
    public var customMirror: Mirror {
        let names = headers.map(\.name.description)
        return Mirror(
            self, children: ["method": method, "url": url.withoutSecrets, "headers": names, "hasBody": body != nil])
    }
}

extension Response: CustomReflectable {
    /// Without userinfo and query of its URL.
    public var customMirror: Mirror {
        Mirror(
            self, children: ["url": url.withoutSecrets, "status": http?.status as Any, "mediaType": mediaType as Any])
    }
}

extension LoadError: CustomReflectable {
    /// Without userinfo and query of its URL.
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
    /// What was asked for and what was answered, each as its own reflection shows it.
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "request": request, "response": response as Any, "fetchType": fetchType, "error": error as Any,
            ])
    }
}

extension ResumeToken: CustomReflectable {
    /// Without userinfo and query of its URL.
    public var customMirror: Mirror { Mirror(self, children: ["token": description]) }
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
