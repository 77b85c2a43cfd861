// SPDX-License-Identifier: Apache-2.0

// Command lines of wget, each run by wget and by `urlload wget`. The text after `##` is the first column of
// the row about the difference in the table of docs/guides/command-line.md.

enum WgetLines {
    static let all = #"""
        -q U/file
        U/file
        -q U/folder/name.txt
        -q U/plain?q=1
        -q -O out.txt U/plain
        -qO- U/plain
        -q -O - U/moved
        -q -O out.txt U/plain U/file U/plain
        -e robots=off -q U/file
        -q U/moved
        -q -P sub U/file
        -q -nc U/data.txt
        -q U/data.txt
        -q -i urls.txt
        -qc -O part.bin U/file
        -q -c U/file
        -q -c -O same.txt U/plain
        -q -c -O whole.bin U/file
        -q --waitretry=0 -O out.txt U/halves
        -q --waitretry=0 -O - U/halves
        -q --tries=2 --waitretry=0 U/halves
        -q -N U/file
        -q --header='X-One: 1' U/plain -O out.txt
        -q -U Agent/1.0 U/plain -O out.txt
        -q --referer=http://from.test/ U/plain -O out.txt
        -q --post-data='a=1&b=2' U/echo -O out.txt
        -q --post-file=data.txt U/echo -O out.txt
        -q --method=PUT --body-data=x U/echo -O out.txt
        -q --method=DELETE U/plain -O out.txt
        -q --user=ada --password=secret U/door -O out.txt
        -q --auth-no-challenge --user=ada --password=secret U/plain -O out.txt
        -q --load-cookies=jar.txt U/plain -O out.txt
        -q --spider U/plain
        -q --spider U/plain U/file
        -q -nc -O /dev/null U/file
        -q -N -O /dev/null U/file
        -q -t 1 U/missing
        -q -t 1 U/broken
        -q -t 1 U/door
        -q -t 1 U/missing U/door
        -q -t 1 U/missing http://127.0.0.1:1/
        -q -t 1 http://127.0.0.1:1/ U/plain
        -q -t 1 http://127.0.0.1:1/
        -q -t 1 -T 1 U/stall
        -q -t 1 nonsense://x/
        -q --no-such-option U/plain
        -q
        -q --content-on-error -O out.txt U/missing
        -q --max-redirect=0 U/moved -O out.txt ## a file that is not loaded
        -q --max-redirect=0 U/moved
        -q --header=Accept: U/plain -O out.txt ## --header='Accept:'
        -q --header='X-One: 1' --header= U/plain
        -q -x U/folder/name.txt
        -q -x -nH U/folder/name.txt
        -q -x -nH --cut-dirs=1 U/folder/a/name.txt
        -q -x --protocol-directories U/folder/name.txt
        -q --force-directories U/plain?q=1
        -q -x -P sub U/folder/
        -q -x -nd U/folder/name.txt
        -q -nH U/folder/name.txt
        -q --trust-server-names U/moved
        -q --trust-server-names U/moved/twice
        -q --trust-server-names -nc U/moved/data ## -nc with --trust-server-names
        -q --content-disposition U/named
        -nv -T 5 -t 1 U/file
        -q --no-check-certificate U/file
        """#
}
