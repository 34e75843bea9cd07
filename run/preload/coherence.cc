#include "run/preload/coherence.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "core/buffer/opener.h"
#include "run/preload/leaving.h"
#include "run/preload/others.h"
#include "run/preload/settings.h"
#include "run/preload/watch.h"

namespace outcore::preload {

using IsOurs = std::function<bool(std::byte*)>;

namespace {

std::string explain(int error) { return ::strerrordesc_np(-error); }

// Sees to it that nobody writes the file while it is taken, or that we hear of it, where possible.
std::string hold_read_only(TakenFile& file) {
  const int result = Watch::instance().watch(file, Watch::For::kWrites);
  if (result == 0) {
    file.remark = "read-only, under a read lease";
    file.is_unchanging = file.is_leased = true;
    return {};
  }
  if (result == -EAGAIN) {
    const std::string who = who_has(file.identity);
    return (who.empty() ? "another process" : who) +
           " has it open for writing: name it by --map if that is harmless";
  }
  struct statvfs about;
  if (::fstatvfs(file.fd, &about) == 0 && (about.f_flag & ST_RDONLY) != 0) {
    file.remark = "read-only, on a filesystem that is mounted read-only";
    file.is_unchanging = true;
    return {};
  }
  if (Watch::instance().watch(file, Watch::For::kChanges) == 0) {
    file.remark = "read-only, watched for writes of others (no lease: " + explain(result) + ")";
    return {};
  }
  file.remark = "read-only; writes of others are not seen (no lease: " + explain(result) + ")";
  return {};
}

}  // namespace

// With --map the option speaks of processes beside the run. One of the run may have the file
// through the kernel, since it was handed back, or since it has no part in the buffer.
std::string who_else_writes(const TakenFile& file) {
  if (!file.is_named) {
    const std::string who = who_has(file.identity);
    return who.empty() ? who : who + " has it open, too: name it by --map if that is harmless";
  }
  if (!settings().shares_writes) return {};
  const std::string who = who_has(file.identity, [&](int process) {
    return (file.board != nullptr && buffer::Opener::is_one(*file.board, process)) ||
           is_under_run(process);
  });
  return who.empty() ? who : who + ", which is under `outcore run`, too, has it open";
}

namespace {

// Why somebody may have the file whom nobody finds, as he has no descriptor yet.
std::string who_may_get_it(const TakenFile& file) {
  if (was_sent(file.identity))
    return "the program has sent a descriptor of it through a socket: name it by --map if that is "
           "harmless";
  if (Starting::is_any()) return "the program is just starting another one, which may have it";
  return {};
}

}  // namespace

std::string become_writable(TakenFile& file, const std::byte* address, const IsOurs& is_ours) {
  if (const Status s = Watch::instance().start(); !s)
    return "nobody would hear of child processes that use it (" + s.message() + ")";
  Watch::instance().end(file);
  file.is_writable = true;
  const OwnUse use =
      own_use_of(file.identity, [&](std::byte* a) { return a == address || is_ours(a); });
  if (use.is_unknown) return "what the program has open could not be looked at";
  if (use.is_in_stdio) return "the program also reads or writes it by stdio, which nobody sees";
  if (use.has_later_writes) return "the program has set up io_uring or aio, which nobody sees";
  if (use.kernel_mappings != 0) return "the program has another mapping of it, left to the kernel";
  // The watch begins before the look at who has it open: so we hear of those who open it between.
  const int watched = Watch::instance().watch(
      file, file.may_be_together ? Watch::For::kStrangersOpens : Watch::For::kOpens);
  if (file.is_named) {
    const bool is_asked = settings().shares_writes;
    if (is_asked && watched < 0)
      return "nobody would tell of processes of the run that open it (fanotify: " +
             explain(watched) + ")";
    if (const std::string who = is_asked ? who_may_get_it(file) : ""; !who.empty()) return who;
    if (const std::string who = file.is_joining ? "" : who_else_writes(file); !who.empty())
      return who;
    file.remark = is_asked ? "named by --map: who has it open outside of the run is not asked"
                           : "named by --map: who else has it open is not asked";
    if (watched >= 0) file.remark += "; handed back when another opens it";
    return {};
  }
  if (watched == 1)
    return "others who open it could not be made to wait until it is stored (CAP_SYS_ADMIN is "
           "missing): name it by --map if there are none";
  if (watched != 0)
    return "nobody would tell of others who open it (fanotify: " + explain(watched) +
           "): name it by --map if there are none";
  if (const std::string who = who_may_get_it(file); !who.empty()) return who;
  // Who is to write it together with others has it open only if they let it.
  const std::string who = file.is_joining ? "" : who_else_writes(file);
  if (!who.empty()) return who;
  file.remark = "writable; handed back when another opens it";
  return {};
}

namespace {

std::string decide(TakenFile& file, const std::byte* address, bool is_writable_mapping,
                   bool is_first, const IsOurs& is_ours) {
  if (file.identity.device == ~uint64_t{0}) {  // a block device, which --map names
    if (const Status s = Watch::instance().start(); !s && file.is_open_for_writing)
      return "nobody would hear of child processes that use it (" + s.message() + ")";
    file.is_writable = file.is_open_for_writing;
    file.remark = "a block device, named by --map: who else has it open is not asked";
    return {};
  }
  if (!is_first)
    return is_writable_mapping && !file.is_writable ? become_writable(file, address, is_ours)
                                                    : std::string();
  const OwnUse use = own_use_of(file.identity, [](std::byte*) { return true; });
  if (use.is_unknown) return "what the program has open could not be looked at";
  return is_writable_mapping || use.is_open_for_writing ? become_writable(file, address, is_ours)
                                                        : hold_read_only(file);
}

}  // namespace

std::string keep_coherent(TakenFile& file, const std::byte* address, bool is_writable_mapping,
                          bool is_first, const IsOurs& is_ours) {
  try {
    return decide(file, address, is_writable_mapping, is_first, is_ours);
  } catch (const std::bad_alloc&) {
    return "no memory left";  // as short as can be kept without any
  }
}

}  // namespace outcore::preload
