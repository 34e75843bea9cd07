"""check_sizes: what it counts, and what it must not be fooled by."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_sizes  # noqa: E402


def problems(path, text):
    return check_sizes.check_file(pathlib.PurePosixPath(path), text)


def function_of(lines, head="int f(int a)"):
    return head + " {\n" + "  work();\n" * (lines - 2) + "}\n"


class CheckSizes(unittest.TestCase):
    def test_limits_are_reached_but_not_passed(self):
        self.assertEqual(problems("a.cc", "x;\n" * 400), [])
        self.assertEqual(len(problems("a.cc", "x;\n" * 401)), 1)
        self.assertEqual(problems("a.cc", function_of(70)), [])
        self.assertEqual(len(problems("a.cc", function_of(71))), 1)
        self.assertEqual(problems("a.cc", "//" + "…" * 98 + "\n"), [])
        self.assertEqual(len(problems("a.cc", "//" + "…" * 99 + "\n")), 1)

    def test_a_long_namespace_or_class_is_no_function(self):
        for head in ("namespace a", "class A final : public B", "struct A", 'extern "C"', "enum X"):
            self.assertEqual(problems("a.cc", function_of(100, head)), [], head)

    def test_functions_in_scopes_and_of_all_kinds_are_counted(self):
        for head in ("template <typename T>\nvoid f(T t)", "TEST(A, B)", "A::A(int b) : b_(b)",
                     "auto f() -> int", "bool operator==(A a)"):
            text = "namespace n {\nclass C {\n" + function_of(72, head) + "};\n}\n"
            self.assertEqual(len(problems("a.cc", text)), 1, head)

    def test_a_lambda_counts_with_its_function(self):
        text = "void f() {\n  g([&] {\n" + "    x();\n" * 80 + "  });\n}\n"
        self.assertEqual(len(problems("a.cc", text)), 1)

    def test_braces_in_literals_comments_and_macros_are_text(self):
        fence = "const char* a = \"{\"; char b = '{'; // {\n/* { */ int c = 1'000;\n"
        fence += 'const char* r = R"x({ "{ )x";\n#define OPEN { \\\n {\n'
        self.assertEqual(problems("a.cc", fence + function_of(60) + function_of(60)), [])

    def test_a_header_introduces_itself_once(self):
        good = "// Thing: what it is.\n#pragma once\n"
        self.assertEqual(problems("a.h", good), [])
        self.assertEqual(len(problems("a.h", "#pragma once\n")), 1)
        self.assertEqual(len(problems("a.h", "// Thing: what it is.\n")), 1)
        self.assertEqual(len(problems("a.h", "// What it is.\n#pragma once\n")), 1)

    def test_python_and_shell_functions_are_counted(self):
        python = "def f():\n" + "    work()\n" * 70
        shell = "f() {\n" + "  work\n" * 69 + "}\n"
        self.assertEqual(len(problems("a.py", python)), 1)
        self.assertEqual(len(problems("a.sh", shell)), 1)


if __name__ == "__main__":
    unittest.main()
