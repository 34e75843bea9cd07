#!/bin/bash
# lucene.sh : searches an index of 30 MiB through MMapDirectory, whose files are mapped read-only.
BUDGET=6M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs javac java
jar=
for file in /usr/share/java/lucene-core-*.jar /usr/share/java/lucene8-core*.jar; do
  [[ ! -f $file ]] || jar=$file
done
[[ -n $jar ]] || skip "Lucene is not installed: tools/install_packages.sh programs"

javac -cp "$jar" -d . "$here/LuceneIndex.java"
java=(java -Xmx128m -XX:+UseSerialGC -cp ".:$jar" LuceneIndex)
"${java[@]}" build index
plain=$("${java[@]}" search index)
under=$(rt -- "${java[@]}" search index)
expect_taken '*/index/*.fdt'
expect_equal "documents found" "$plain" "$under"
[[ $under == "3571 "* ]] || fail "3571 documents have the word w3 of 7, not: $under"
