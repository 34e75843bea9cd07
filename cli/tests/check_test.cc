// What `outcore check` says of real programs: made here, or the system's.
#include <elf.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cstdlib>
#include <cstring>

#include "cli/tests/command_line.h"

namespace outcore::cli {
namespace {

class Check : public CommandTest {
 protected:
  // The object of one program.
  Json check(const std::string& program, int status) const {
    const Outcome outcome = run("check --json '" + program + "'");
    EXPECT_EQ(outcome.status, status) << outcome.out;
    const auto all = Json::parse_or_null(outcome.out);
    if (!all.is_object() || !all["programs"].is_array()) return {};
    EXPECT_FALSE(all["machine"].empty());
    return all["programs"][0];
  }
  // What is said about one thing; empty if nothing is.
  static std::string said(const Json& program, const std::string& about,
                          const std::string& verdict) {
    for (const auto& finding : program["findings"])
      if (finding["about"] == about && finding["verdict"] == verdict)
        return finding["text"].as<std::string>().value() + "; " +
               finding["remedy"].as<std::string>().value();
    return "";
  }
  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }
  // Compiles a program. False: there is no compiler, or it cannot do this.
  bool compile(const std::string& name, const std::string& source,
               const std::string& flags = "") const {
    std::ofstream(path(name + ".c")) << source;
    const std::string command = "cc " + path(name + ".c") + " -o " + path(name) + " " + flags +
                                " >" + path("cc.log") + " 2>&1";
    return std::system(command.c_str()) == 0;
  }
  void write_script(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    ::chmod(path(name).c_str(), 0755);
  }
  // A copy of a program of ours, with its bytes changed.
  template <typename Change>
  std::string changed_copy(const std::string& name, Change change) const {
    std::ifstream file("/bin/sh", std::ios::binary);  // small
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    change(bytes);
    std::ofstream(path(name), std::ios::binary) << bytes;
    ::chmod(path(name).c_str(), 0755);
    return path(name);
  }
};

constexpr const char* kPlain = "#include <stdio.h>\nint main(void) { puts(\"x\"); return 0; }\n";
constexpr const char* kMapping =
    "#include <stdlib.h>\n#include <sys/mman.h>\n"
    "int main(int c, char** v) { void* p = mmap(0, 4096u * c, PROT_READ, MAP_PRIVATE | "
    "MAP_ANONYMOUS, -1, 0); char* q = malloc(c); return p == v || q == 0; }\n";

TEST_F(Check, AProgramOfTheSystemWorks) {
  const auto program = check("sh", 0);
  EXPECT_NE(program["verdict"], "cannot work");
  EXPECT_TRUE(program["path"].as<std::string>().value().starts_with("/")) << program;
  EXPECT_TRUE(has(said(program, "linking", "works"), "ld-linux")) << program;
}

TEST_F(Check, ThisTestWhichMapsWorks) {
  const auto program = check(std::filesystem::canonical("/proc/self/exe"), 0);
  EXPECT_TRUE(has(said(program, "mappings", "works"), "mmap")) << program;
  EXPECT_TRUE(has(said(program, "memory", "works"), "_Znwm")) << program;
}

TEST_F(Check, WhatAProgramCallsIsTold) {
  if (!compile("maps", kMapping)) GTEST_SKIP() << "needs a C compiler";
  auto program = check(path("maps"), 0);
  EXPECT_EQ(program["verdict"], "works");
  EXPECT_TRUE(has(said(program, "mappings", "works"), "it calls mmap")) << program;
  EXPECT_TRUE(has(said(program, "memory", "works"), "malloc")) << program;
  ASSERT_TRUE(compile("plain", kPlain));
  program = check(path("plain"), 0);
  EXPECT_EQ(program["verdict"], "works in part");
  EXPECT_TRUE(has(said(program, "mappings", "works in part"), "maps no files")) << program;
}

TEST_F(Check, AnAllocatorInsideIsTold) {
  const std::string source =
      "void* malloc(unsigned long n) { static char m[99999]; return m + n; }";
  if (!compile("allocates", std::string(kPlain) + source, "-fno-builtin"))
    GTEST_SKIP() << "needs a C compiler";
  const auto program = check(path("allocates"), 0);
  EXPECT_TRUE(has(said(program, "memory", "works in part"), "--alloc")) << program;
}

TEST_F(Check, AStaticProgramCannotWork) {
  unsigned tried = 0;
  for (const char* flags : {"-static", "-static-pie"}) {
    if (!compile("static", kPlain, flags)) continue;
    ++tried;
    const auto program = check(path("static"), 1);
    EXPECT_EQ(program["verdict"], "cannot work");
    EXPECT_TRUE(has(said(program, "linking", "cannot work"), "without -static")) << program;
  }
  if (tried == 0) GTEST_SKIP() << "needs a C compiler and a static C library";
}

TEST_F(Check, AGoProgramCannotWorkHoweverItIsLinked) {
  std::ofstream(path("buildinfo")) << "\xff Go buildinf:";
  std::filesystem::copy_file("/proc/self/exe", path("copy"));
  if (std::system(("objcopy --add-section .go.buildinfo=" + path("buildinfo") + " " + path("copy") +
                   " " + path("go") + " 2>" + path("log"))
                      .c_str()) != 0)
    GTEST_SKIP() << "needs objcopy (binutils)";
  const auto program = check(path("go"), 1);
  EXPECT_TRUE(has(said(program, "Go", "cannot work"), "system calls")) << program;
}

TEST_F(Check, AnotherMachinesProgramCannotWork) {
  const std::string arm = changed_copy("arm", [](std::string& bytes) {
    const uint16_t machine = EM_AARCH64;
    std::memcpy(&bytes[offsetof(Elf64_Ehdr, e_machine)], &machine, sizeof machine);
  });
  EXPECT_TRUE(has(said(check(arm, 1), "machine", "cannot work"), "64-bit ARM"));
  const std::string small = changed_copy("small", [](std::string& bytes) {
    const uint16_t machine = EM_386;
    bytes[EI_CLASS] = ELFCLASS32;
    std::memcpy(&bytes[offsetof(Elf32_Ehdr, e_machine)], &machine, sizeof machine);
  });
  EXPECT_TRUE(has(said(check(small, 1), "machine", "cannot work"), "32-bit x86"));
}

TEST_F(Check, AProgramOfMuslCannotWork) {
  const std::string musl = changed_copy("musl", [](std::string& bytes) {
    static const std::string theirs = "/lib/ld-musl-x86_64.so.1";
    const size_t at = bytes.find("/lib64/ld-linux-x86-64.so.2");
    ASSERT_NE(at, std::string::npos);
    bytes.replace(at, theirs.size() + 1, theirs.c_str(), theirs.size() + 1);
  });
  EXPECT_TRUE(has(said(check(musl, 1), "C library", "cannot work"), "glibc"));
}

TEST_F(Check, MoreRightsThanTheCallersAreAnObstacle) {
  if (::getuid() != 0) GTEST_SKIP() << "needs root, to give a program away";
  struct statvfs mount {};
  if (::statvfs(dir().c_str(), &mount) != 0 || (mount.f_flag & ST_NOSUID) != 0)
    GTEST_SKIP() << "set-user-ID has no effect in " << dir();
  std::filesystem::copy_file("/proc/self/exe", path("given"));
  ASSERT_EQ(::chown(path("given").c_str(), 65534, 65534), 0);
  for (const mode_t mode : {04755U, 02755U}) {
    ASSERT_EQ(::chmod(path("given").c_str(), mode), 0);
    EXPECT_TRUE(has(said(check(path("given"), 1), "rights", "cannot work"), "LD_PRELOAD"));
  }
  // Root gets no more by root's bit; others would.
  ASSERT_EQ(::chown(path("given").c_str(), 0, 0), 0);
  ASSERT_EQ(::chmod(path("given").c_str(), 04755), 0);
  EXPECT_TRUE(has(said(check(path("given"), 0), "rights", "works in part"), "others"));
}

TEST_F(Check, AScriptIsFollowedToItsInterpreter) {
  write_script("plain.sh", "#!/bin/sh\n");
  EXPECT_TRUE(has(said(check(path("plain.sh"), 0), "script", "works"), "/bin/sh"));
  for (const char* line : {"#!/usr/bin/env sh\n", "#! /usr/bin/env -S A=b sh -e\n"}) {
    write_script("found.sh", line);
    const auto program = check(path("found.sh"), 0);
    EXPECT_EQ(program["findings"][0]["text"], "it is run by /usr/bin/env");
    EXPECT_TRUE(has(program["findings"][1].value("text", ""), "/sh")) << program;
    EXPECT_TRUE(has(said(program, "linking", "works"), "ld-linux")) << program;
  }
  write_script("lost.sh", "#!/missing/interpreter -x\n");
  EXPECT_TRUE(has(said(check(path("lost.sh"), 1), "file", "cannot work"), "/missing/interpreter"));
  write_script("astray.sh", "#!/usr/bin/env no-such-interpreter\n");
  EXPECT_TRUE(has(said(check(path("astray.sh"), 1), "file", "cannot work"), "PATH"));
  write_script("round.sh", "#!" + path("round.sh") + "\n");
  EXPECT_NE(said(check(path("round.sh"), 1), "file", "cannot work"), "");
}

TEST_F(Check, WhatIsNoProgramCannotWork) {
  EXPECT_TRUE(has(said(check("no-such-program", 1), "file", "cannot work"), "PATH"));
  EXPECT_TRUE(has(said(check(path("missing"), 1), "file", "cannot work"), "not there"));
  EXPECT_TRUE(has(said(check(dir(), 1), "file", "cannot work"), "chmod +x"));
  std::ofstream(path("text")) << "text";
  EXPECT_TRUE(has(said(check(path("text"), 1), "file", "cannot work"), "chmod +x"));
  write_script("text", "echo x\n");
  EXPECT_TRUE(has(said(check(path("text"), 1), "format", "cannot work"), "#!"));
  write_script("empty", "");
  EXPECT_TRUE(has(said(check(path("empty"), 1), "format", "cannot work"), "#!"));
}

TEST_F(Check, ABrokenFileIsNoCrash) {
  unsigned seed = 1;
  for (const size_t size : {20U, 64U, 200U, 1000U, 5000U, 100'000U}) {
    const std::string cut = changed_copy("cut", [&](std::string& bytes) { bytes.resize(size); });
    const Outcome outcome = run("check " + cut);
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 1) << size;
  }
  for (unsigned round = 0; round < 20; ++round) {
    const std::string wrong = changed_copy("wrong", [&](std::string& bytes) {
      for (size_t at = EI_NIDENT; at < 1000; at += 1 + seed % 40) {
        seed = seed * 1664525 + 1013904223;
        bytes[at] = static_cast<char>(seed >> 24);
      }
      const Elf64_Half type = ET_EXEC, machine = EM_X86_64;
      std::memcpy(&bytes[offsetof(Elf64_Ehdr, e_type)], &type, sizeof type);
      std::memcpy(&bytes[offsetof(Elf64_Ehdr, e_machine)], &machine, sizeof machine);
    });
    const Outcome outcome = run("check " + wrong);
    EXPECT_TRUE(outcome.status == 0 || outcome.status == 1) << round;
  }
}

TEST_F(Check, SaysTheVerdictFirstAndOneLineAFinding) {
  const Outcome outcome = run("check sh no-such-program");
  EXPECT_EQ(outcome.status, 1);
  EXPECT_TRUE(outcome.err.empty()) << outcome.err;
  EXPECT_TRUE(has(outcome.out, "/sh: works")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "no-such-program: cannot work\n  cannot work    file"))
      << outcome.out;
  EXPECT_TRUE(has(outcome.out, "this machine\n")) << outcome.out;
  EXPECT_TRUE(has(outcome.out, "delivery")) << outcome.out;
}

TEST_F(Check, TheDeliveryIsThatOfARun) {
  ::setenv("OUTCORE_PRELOAD_LIBRARY", a_library().c_str(), 1);
  for (const char* delivery : {"auto", "messages"}) {
    ::setenv("OUTCORE_DELIVERY", delivery, 1);
    const std::string window = run("run printenv OUTCORE_RUN_WINDOW").out;
    const bool has_window = !window.empty() && window.rfind("none", 0) != 0;
    const Outcome told = run("check sh");
    const bool is_in_thread = has(told.out, "delivery        in-thread: ");
    EXPECT_EQ(is_in_thread, has_window) << window << told.out;
    EXPECT_FALSE(has(told.out, "--delivery in-thread is faster")) << told.out;
  }
  ::unsetenv("OUTCORE_DELIVERY");
  ::unsetenv("OUTCORE_PRELOAD_LIBRARY");
}

TEST_F(Check, WithoutAProgramIsAMistakeOfUse) {
  for (const char* arguments : {"check", "check --nonsense sh", "check --json"}) {
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.status, 2) << arguments;
    EXPECT_EQ(outcome.error_lines(), 1U) << outcome.err;
  }
  EXPECT_TRUE(has(run("check --help").out, "Example"));
}

TEST_F(Check, RunWarnsOnceAndStartsTheProgramAllTheSame) {
  if (!compile("static", kPlain, "-static"))
    GTEST_SKIP() << "needs a C compiler and a static C library";
  ::setenv("OUTCORE_PRELOAD_LIBRARY", command_path().c_str(), 1);
  const Outcome told = run("run " + path("static")), quiet = run("run --quiet " + path("static"));
  ::unsetenv("OUTCORE_PRELOAD_LIBRARY");
  EXPECT_EQ(told.out, "x\n");
  EXPECT_EQ(told.error_lines(), 1U) << told.err;
  EXPECT_TRUE(has(told.err, "is statically linked")) << told.err;
  EXPECT_EQ(quiet.out, "x\n");
  EXPECT_EQ(quiet.err, "");
}

}  // namespace
}  // namespace outcore::cli
