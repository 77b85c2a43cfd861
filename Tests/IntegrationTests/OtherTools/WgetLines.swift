// SPDX-License-Identifier: Apache-2.0

// Command lines of wget, each run by wget and by `urlload wget`. The text after `##` is the reason for an intended
// difference.

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
        -q U/data.txt ## code
        -q -i urls.txt
        -qc -O part.bin U/file
        -q -c U/file
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
        -q -t 1 U/missing ## code
        -q --content-on-error -O out.txt U/missing ## code
        -q --max-redirect=0 U/moved -O out.txt ## code
        -q --content-disposition U/named
        -nv -T 5 -t 1 U/file
        -q --no-check-certificate U/file
        """#
}
