#!/bin/bash
# java.sh : FileChannel.map of 64 MiB, written and read; the JVM has its own signal handlers.
BUDGET=12M
# shellcheck source-path=SCRIPTDIR source=lib.sh
. "$(dirname "$0")/lib.sh"
needs javac java

javac -d . "$here/MappedFile.java"
java=(java -Xmx64m -XX:+UseSerialGC -cp . MappedFile)
plain=$("${java[@]}" write plain.dat)
under=$(rt -- "${java[@]}" write under.dat)
expect_taken '*/under.dat'
expect_equal "written" "$plain" "$under"
expect_same_bytes "the files" plain.dat under.dat
plain=$("${java[@]}" read plain.dat)
under=$(rt -- "${java[@]}" read under.dat)
expect_taken '*/under.dat'
expect_equal "read" "$plain" "$under"
