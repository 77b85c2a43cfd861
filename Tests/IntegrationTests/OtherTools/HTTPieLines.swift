// SPDX-License-Identifier: Apache-2.0

// Command lines of httpie, each run by `http` and by `urlload http`. The text after `##` is the first column of
// the row about the difference in the table of docs/guides/command-line.md.

enum HTTPieLines {
    static let all = #"""
        --ignore-stdin U/plain
        --ignore-stdin GET U/plain
        --ignore-stdin DELETE U/plain
        --ignore-stdin U/plain X-One:1
        --ignore-stdin U/plain 'User-Agent:Agent/1.0'
        --ignore-stdin U/plain 'Accept:text/html'
        --ignore-stdin U/plain q==1 'r==a b'
        --ignore-stdin U/echo name=Ada
        --ignore-stdin POST U/echo name=Ada born:=1815
        --ignore-stdin PUT U/echo name=Ada
        --ignore-stdin U/echo 'list:=[1, 2, {"a": null}]' ok:=true
        --ignore-stdin U/echo text=@data.txt
        --ignore-stdin U/echo doc:=@doc.json
        --ignore-stdin U/echo 'a[b]=1' 'a[c]=2'
        --ignore-stdin U/echo 'a[]=1' 'a[]=2'
        --ignore-stdin U/echo name=Ada X-Two:2 q==1
        --ignore-stdin U/echo 'quoted="x"' 'uml=ü' ## letters in JSON
        --ignore-stdin -f U/echo name=Ada 'note=a b&c'
        --ignore-stdin --form PUT U/echo a=1 b=2
        --ignore-stdin -f U/echo f@up.bin a=1
        --ignore-stdin POST U/echo @data.txt
        --ignore-stdin U/echo @doc.json q==1
        --ignore-stdin PUT U/echo @up.bin X-One:1
        --ignore-stdin -f U/echo @up.bin
        --ignore-stdin U/echo @data.txt @doc.json
        --ignore-stdin U/echo f@data.txt
        --ignore-stdin U/echo @missing.txt
        --ignore-stdin --multipart U/echo a=1 b=2
        --ignore-stdin --raw 'text' U/echo
        --ignore-stdin -j --raw '{"a":1}' U/echo
        POST U/echo
        PATCH U/echo Content-Type:text/plain
        --ignore-stdin -a ada:secret U/plain
        --ignore-stdin -A bearer -a token123 U/plain
        --ignore-stdin -A digest -a ada:secret U/plain
        --ignore-stdin --follow U/moved
        --ignore-stdin U/moved ## redirects
        --ignore-stdin --check-status U/missing
        --ignore-stdin --check-status U/broken
        --ignore-stdin --check-status U/plain
        --ignore-stdin --check-status --follow U/moved
        --ignore-stdin --max-redirects 1 --follow U/moved/twice
        --ignore-stdin --timeout 1 U/stall
        --ignore-stdin http://127.0.0.1:1/
        --ignore-stdin --no-such-option U/plain
        --ignore-stdin
        --ignore-stdin U/plain Accept: 
        --ignore-stdin --print=B U/echo a=1
        --ignore-stdin --print=b U/echo a=1
        --ignore-stdin --print=h U/file
        --ignore-stdin --print=hb U/file
        --ignore-stdin --print=Bb U/echo a=1
        --ignore-stdin --print=Bhb -f U/echo 'a=b c'
        --ignore-stdin --print=Bh --pretty=none U/echo a=1
        --ignore-stdin --print= U/plain
        --ignore-stdin --print=x U/plain
        --ignore-stdin --offline --print=B -f U/echo a=1 b=2
        --ignore-stdin --offline --print=B -o out.txt U/echo a=1
        --ignore-stdin --print=Bhb -o out.txt U/echo a=1
        --ignore-stdin -q -v U/plain
        --ignore-stdin -o out.txt U/plain
        --ignore-stdin -d U/named ## -d into a pipe
        --ignore-stdin -d -o out.bin U/file
        --ignore-stdin -b U/plain
        --ignore-stdin U/plain 'a\:b==1'
        """#
}
