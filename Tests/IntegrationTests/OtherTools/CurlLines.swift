// SPDX-License-Identifier: Apache-2.0

// Command lines of curl, each run by curl and by urlload with the same server. `U` is the server's address; the text
// after `##` is the first column of the row about the difference in the table of docs/guides/command-line.md.

enum CurlLines {
    static let all = [requests, bodies, forms, outputs, statuses, patterns, resuming, groups].joined(
        separator: "\n")

    static let requests = #"""
        U/plain
        -s U/plain
        -sS U/plain
        -fsSL U/plain
        -fsSL U/moved
        -L U/moved
        -sL U/moved/twice
        U/plain?q=1&r=2
        -s U/plain U/echo
        --url U/plain
        -I U/plain
        -sI U/plain
        -sIL U/moved
        -i U/plain
        -isL U/moved
        -si U/trailers
        -s U/trailers
        -s --anyauth -u ada:secret -D heads.txt -o body.txt U/door
        -si --anyauth -u ada:secret U/door
        -X GET U/plain
        -X DELETE U/plain
        -X OPTIONS U/plain
        -X PATCH -d a=1 U/echo
        --request POST U/echo
        -H 'X-One: 1' U/plain
        -H 'X-One: 1' -H 'X-Two: 2' U/plain
        -H 'Accept: text/html' U/plain
        -H 'Accept:' U/plain
        -H 'Accept:' -o out.txt U/plain
        -H 'Accept:' -d a=1 U/echo
        -H 'User-Agent:' U/plain
        -H 'User-Agent:' -H 'Accept:' -I U/plain
        -H 'Expect:' -T up.bin U/put
        -H 'X-Empty;' U/plain
        -H @fields.txt U/plain
        -A Agent/1.0 U/plain
        --user-agent 'Mozilla/5.0 (X11)' U/plain
        -e http://from.test/ U/plain
        --referer 'http://from.test/;auto' U/plain
        -b a=1 U/plain
        -b 'a=1; b=2' U/plain
        --cookie jar.txt U/plain
        -c jar-out.txt -o /dev/null U/cookies
        --basic -u ada:secret U/plain
        -u ada:secret U/plain ## password (-u)
        -u ada:secret U/door ## password (-u)
        --oauth2-bearer token123 U/plain
        -H 'Authorization: Bearer abc' U/plain
        --digest -u ada:secret U/plain
        -r 0-9 U/file
        -r 10- U/file
        -r -10 U/file
        --range 0-4,10-14 U/file
        -z 'Sun, 06 Nov 1994 08:49:37 GMT' U/plain
        -z '1994-11-06 08:49:37' U/plain ## -z DATE
        -z '6 Nov 1994' U/plain
        -z '-6 Nov 1994' U/plain
        -z '7 Nov 1994' U/file
        -s -z '7 Nov 1994' -o out.txt -w '%{http_code} %{size_download}\n' U/file
        -z '5 Nov 1994' -o out.txt U/file
        -z '-5 Nov 1994' U/file
        -z '-7 Nov 1994' U/file
        -i -z '7 Nov 1994' U/file
        -L -e ';auto' U/moved
        -L -e 'http://from.test/;auto' U/moved/twice
        -L -e 'http://from.test/' U/moved
        -L --post301 -d a=1 U/moved/post301
        -L --post302 -d a=1 U/moved/post
        -L --post302 -H 'Content-Type: text/x' -d a=1 U/moved/post
        -L --post301 -d a=1 U/moved/post
        -L --post303 -d a=1 U/moved/post303
        -0 U/plain
        --http1.0 -d a=1 U/echo
        -0 -s U/plain U/plain
        --local-port 20000-29999 U/plain
        --local-port nothing U/plain
        --keepalive-time 5 U/plain
        --no-keepalive U/plain
        --tr-encoding U/plain ## --tr-encoding
        --max-filesize 1000 U/file
        --max-filesize 1k U/file
        --max-filesize 999 -s U/file
        --max-filesize 1000 -I U/file
        --max-filesize 999 -s -o out.txt U/file
        --max-filesize 999 -s -O U/file
        -f --max-filesize 500 -s U/missing
        --compressed U/plain
        --http1.1 U/plain
        -4 U/plain
        --max-redirs 5 -L U/moved
        -m 20 --connect-timeout 5 U/plain
        --retry 2 --retry-delay 0 U/plain
        -N U/plain
        -g U/plain?a=[1] ## brackets in a query
        -g U/plain?a={1} ## brackets in a query
        """#

    static let bodies = #"""
        -d a=1 U/echo
        -d a=1 -d b=2 U/echo
        --data 'name=Ada Lovelace' U/echo
        -d @data.txt U/echo
        -d @- U/echo
        --data-binary @data.txt U/echo
        --data-binary @- U/echo
        --data-raw @data.txt U/echo
        --data-ascii @data.txt U/echo
        --data-urlencode 'q=a b&c' U/echo
        --data-urlencode 'a b&c' U/echo
        --data-urlencode '=a b' U/echo
        --data-urlencode @data.txt U/echo
        --data-urlencode t@data.txt U/echo
        -d a=1 --data-urlencode 'b=ü' U/echo
        -G -d a=1 -d b=2 U/plain
        -G -d a=1 U/plain?z=0
        -G --data-urlencode 'q=a b' U/plain
        -I -G -d a=1 U/plain
        --url-query 'q=a b' U/plain
        --url-query +raw U/plain?z=0
        -X PUT -d a=1 U/echo
        -d '{"a":1}' -H 'Content-Type: application/json' U/echo
        --json '{"a":1}' U/echo
        --json @doc.json U/echo
        --json '{"a":' --json '1}' U/echo
        --json '{}' -X PUT U/echo
        --json '{}' -H 'Accept: text/plain' U/echo
        -T up.bin U/put
        -T up.bin U/folder/
        -T - U/put ## -T -
        -X POST -T up.bin U/echo
        -d a=1 -L U/moved/post
        -d a=1 -L U/moved/same
        -d '' U/echo
        """#

    static let forms = #"""
        -F a=1 U/echo
        -F a=1 -F b=2 U/echo
        -F f=@up.bin U/echo
        -F 'f=@doc.json;type=application/json' U/echo
        -F 'f=@up.bin;filename=other.bin' U/echo
        -F 't=<data.txt' U/echo
        --form-string 'a=@b' U/echo
        -F a=1 -d b=2 U/echo
        """#

    static let outputs = #"""
        -o out.txt U/plain
        -sSLo out.txt U/moved
        --output out.txt U/plain
        -o - U/plain
        -o a.txt U/plain -o b.txt U/echo
        -o a.txt U/plain U/echo
        -O U/file
        -sO U/folder/name.txt
        -OL U/moved
        -O U/file -O U/folder/name.txt
        --remote-name-all U/file U/folder/name.txt
        -OJ U/named
        --output-dir out --create-dirs -O U/file
        --create-dirs -o x/y/z.txt U/plain
        --no-clobber -o data.txt U/plain
        -R -o out.txt U/file
        -D - -o out.txt U/plain
        -sD heads.txt U/plain
        -sLD heads.txt -o out.txt U/moved
        -sD heads.txt U/trailers
        -sD heads.txt -o out.txt U/trailers
        -sD - U/trailers
        -siD heads.txt -o out.txt U/trailers
        -i -o out.txt U/plain
        -s -o /dev/null -w '%{http_code}\n' U/plain
        -s -o /dev/null -w '%{http_code} %{size_download} %{content_type}\n' U/file
        -sL -o /dev/null -w '%{num_redirects} %{url_effective}\n' U/moved
        -s -w '%{http_code}\t%{method}\t%{http_version}\n' U/plain
        -s -w '%header{etag} %{filename_effective}\n' -o out.txt U/file
        -s -w '%{onerror}%{exitcode} %{http_code}\n' -f U/missing
        -s -w '100%%\n' U/plain
        -s -o /dev/null -w '%{header_json}\n' U/file
        -s -o /dev/null -w @format.txt U/plain
        --etag-save tag.txt -o out.txt U/file
        --etag-compare tag-in.txt -o out.txt U/file
        -K options.txt
        -K - U/echo
        -q U/plain
        --proto =http -sS U/plain
        --proto =https -s U/plain
        --proto -all,http -sL U/moved
        """#

    static let statuses = #"""
        U/missing
        -f U/missing
        -fsS U/missing
        --fail-with-body U/missing
        -f -o out.txt U/missing
        -o out.txt U/missing
        -fL U/moved/missing
        -s U/broken
        -s --retry 1 --retry-delay 1 U/broken ## --retry
        --max-redirs 1 -sL U/moved/twice
        -m 2 -s U/stall
        -s http://127.0.0.1:1/
        -s U/lost
        -s U/ancient
        -s U/chunk
        -s -o out.txt U/cut ## files
        -s nonsense://x/
        -s --no-such-option U/plain
        """#

    static let patterns = #"""
        U/echo?[1-3]
        -s U/echo?{one,two}
        U/echo?[a-c:2]
        -o 'f#1.txt' U/echo?[01-03]
        -o '#1-#2.txt' U/echo?{x,y}[1-2]
        -s U/echo?[1-
        """#

    static let resuming = #"""
        -C - -o part.bin U/file
        -C - -o none.bin U/file
        -C 100 -o part.bin U/file
        -C - -O U/file
        -C 10 U/file
        -C - -o whole.bin U/file
        """#

    /// Refused by curl since its version 8.
    static let groupsWithoutURL = #"""
        --next -s U/plain
        -s --next U/plain
        -s U/plain --next --next -s U/echo
        """#

    static let groups = #"""
        -s U/plain --next -d a=1 U/echo
        -s -o a.txt U/plain --next -I U/plain
        -s U/plain -: -X PUT U/echo
        -Z -o a.txt U/plain -o b.txt U/echo
        --parallel --parallel-max 2 -O U/file -O U/folder/name.txt
        """#
}
