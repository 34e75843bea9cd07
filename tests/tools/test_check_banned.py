"""check_banned: what it refuses where, and what it lets pass."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_banned  # noqa: E402


def problems(path, text):
    return check_banned.check_file(pathlib.PurePosixPath(path), text)


class CheckBanned(unittest.TestCase):
    def assert_refused(self, path, *lines):
        for line in lines:
            self.assertEqual(len(problems(path, line + "\n")), 1, f"{path}: {line}")

    def assert_passes(self, path, *lines):
        for line in lines:
            self.assertEqual(problems(path, line + "\n"), [], f"{path}: {line}")

    def test_calls_without_a_bound_or_a_seed_are_refused_everywhere(self):
        self.assert_refused("core/os/a.cc", "strcpy(a, b);", "int x = std::rand();", "rand();",
                            "::sprintf(b, f);", "std::thread(f).detach();", "alloca(n);")
        self.assert_passes("core/os/a.cc", "snprintf(b, n, f);", "generator.rand();", "brand(x);",
                           "// strcpy(a, b)", 'say("strcpy(a, b)");')

    def test_a_library_neither_throws_nor_exits(self):
        self.assert_refused("core/os/a.cc", "throw 1;", "exit(1);", "std::exit(1);", "assert(x);")
        self.assert_passes("core/os/a.cc", "_exit(1);", "static_assert(x);", "at_exit(x);")
        self.assert_passes("cli/main.cc", "std::exit(2);")

    def test_a_test_does_not_sleep_nor_time_nor_skip_silently(self):
        self.assert_refused("core/tests/os/a.cc", "usleep(10);", "std::this_thread::sleep_for(x);",
                            "EXPECT_LT(elapsed_ms, 10);", "GTEST_SKIP();", "EXPECT_TRUE(true);",
                            "TEST(A, DISABLED_X) {}")
        skip = 'GTEST_SKIP() << "no zram here";'
        self.assert_passes("core/tests/os/a.cc", skip, "wait_until(x);")

    def test_the_fault_path_allocates_nothing_and_takes_no_lock(self):
        fault = "core/paging/fault_entry.cc"
        lines = ("malloc(1);", "auto p = new Page;", "delete p;", "std::string s;",
                 "std::mutex m;", "std::lock_guard l(m);", "fprintf(f, x);")
        self.assert_refused(fault, *lines)
        for path in ("core/paging/eviction.cc", "core/paging/shared_filler.cc",
                     "core/buffer/claims.cc", "core/prefetch/fetch_tuner.cc",
                     "core/published/events.cc", "core/budget/bounce_pool.cc"):
            self.assert_refused(path, *lines)
        self.assert_passes("core/paging/engine.cc", *lines)
        self.assert_passes(fault, "new (place) Page;", "A(const A&) = delete;", "std::span<int> s;")

    def test_what_a_store_can_do_is_asked_of_its_kind(self):
        lines = ('if (uri.starts_with("far:")) f();', 'return uri.scheme == "file";',
                 'if (scheme_of(uri) != "sparse") f();', 'if (text == "rbd://") f();',
                 'constexpr std::string_view kPool = "versioned:";')
        for path in ("core/runtime/a.cc", "run/commands/a.cc", "cli/a.cc", "python/src/a.cc"):
            self.assert_refused(path, *lines)
        self.assert_passes("far/tests/redis/a.cc", *lines)
        self.assert_passes("cli/a.cc", 'return "versioned:" + folder;', 'f("say file:PATH");',
                           'if (line.starts_with("lock:")) f();',
                           '// if (uri.starts_with("far:")) f();')

    def test_words_are_refused_in_comments_and_documents_too(self):
        self.assert_refused("docs/a.md", "see /work/x", "see /tmp/x", "as issue 2 asks")
        self.assert_refused("core/os/a.cc", "// TODO: later")
        self.assert_passes("docs/a.md", "write it to ${TMPDIR}/tmp/x", "docs/work/x")

    def test_an_exception_gives_its_reason(self):
        self.assert_passes("core/os/a.cc", "exit(1);  // banned-ok: the child of a fork")
        self.assert_refused("core/os/a.cc", "exit(1);  // banned-ok:")


if __name__ == "__main__":
    unittest.main()
