#include "arrays/commands/arrays_verify.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "arrays/commands/open_file.h"
#include "cli/command.h"
#include "cli/json.h"
#include "cli/text.h"

namespace outcore::cli {
namespace {

// A line on a terminal, rewritten at most once for so many bytes.
class Progress {
 public:
  explicit Progress(uint64_t all_bytes)
      : all_bytes_(all_bytes), is_shown_(::isatty(STDERR_FILENO) != 0) {}
  ~Progress() { clear(); }
  void show(uint64_t done) {
    if (!is_shown_ || done < next_) return;
    std::fprintf(stderr, "\rverify: %s of %s   ", format_bytes(done).c_str(),
                 format_bytes(all_bytes_).c_str());
    next_ = done + (uint64_t{64} << 20);
  }
  void clear() const {
    if (is_shown_ && next_ != 0) std::fprintf(stderr, "\r\033[K");
  }

 private:
  const uint64_t all_bytes_;
  const bool is_shown_;
  uint64_t next_ = 0;
};

void print_json(const ArraysVerify& words, const ArraysCheck& found,
                const std::vector<ArrayDamage>& damages) {
  Json list = Json::array();
  for (const ArrayDamage& damage : damages)
    list.push_back({{"array", damage.array}, {"where", damage.where}});
  const Json all = {{"container", words.uri},       {"arrays", found.arrays},
                    {"bytes", found.bytes},         {"damages", found.damages},
                    {"unchecked", found.unchecked}, {"damaged", list}};
  show_json(all);
}

void print_text(const ArraysCheck& found) {
  for (const std::string& name : found.unchecked)
    std::printf("%s: no checksums: store it anew to have some\n", one_line(name).c_str());
  std::printf("%llu array%s, %s read, %llu damaged place%s\n",
              static_cast<unsigned long long>(found.arrays), found.arrays == 1 ? "" : "s",
              format_bytes(found.bytes).c_str(), static_cast<unsigned long long>(found.damages),
              found.damages == 1 ? "" : "s");
}

}  // namespace

int verify_arrays(const ArraysVerify& words) {
  constexpr size_t kDamagesMax = 100'000;  // kept for JSON, at most
  const auto arrays = open_container(words.uri);
  if (!arrays) return report(arrays.error());
  uint64_t all_bytes = 0;
  for (const ArrayInfo& info : arrays->list())
    if (words.name.empty() || info.name == words.name) all_bytes += info.size_bytes;
  std::vector<ArrayDamage> damages;
  bool is_array_damaged = false;
  Progress progress(all_bytes);
  const auto found = arrays->verify(
      words.name,
      [&](const ArrayDamage& damage) {
        progress.clear();
        is_array_damaged = is_array_damaged || !damage.array.empty();
        if (!words.is_json)
          std::printf("%s is damaged: %s\n",
                      one_line(damage.array.empty() ? words.uri : damage.array).c_str(),
                      one_line(damage.where).c_str());
        else if (damages.size() < kDamagesMax)
          damages.push_back(damage);
      },
      [&](uint64_t done) {
        progress.show(done);
        return true;
      });
  progress.clear();
  if (!found) return report(found.error());
  if (words.is_json)
    print_json(words, found.value(), damages);
  else
    print_text(found.value());
  if (found->damages == 0) return 0;
  return report(
      Error{EIO, words.uri + " is damaged in " + std::to_string(found->damages) +
                     (found->damages == 1 ? " place" : " places") +
                     (is_array_damaged ? ": go back to a copy of it, or store those arrays anew"
                                       : ", and its arrays are whole: store something in it, or go "
                                         "back to a copy of it")});
}

Status check_array(const Arrays& arrays, const std::string& name) {
  std::string where;
  const auto found = arrays.verify(
      name, [&](const ArrayDamage& damage) { where = where.empty() ? damage.where : where; });
  if (!found && found.code() == ENOENT) return {};  // it was drained to another container
  if (!found) return found.status();
  if (found->damages == 0) return {};
  return Error{EIO, "'" + name + "' is damaged: " + where + ": see outcore arrays verify " +
                        arrays.uri() + ", and go back to a copy of it"};
}

}  // namespace outcore::cli
