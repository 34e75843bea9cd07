// outcore checkpoint ls, make, rm, mv, prune, rollback, verify, export, clone: work on checkpoints
// while no program uses them.
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/command_syntax.h"
#include "cli/json.h"
#include "cli/pool_uri.h"
#include "cli/store_copy.h"
#include "cli/text.h"
#include "outcore/checkpoint_catalog.h"

namespace outcore::cli {
namespace {

struct Words {
  std::string pool, name, to, comment, object;
  std::vector<std::string> names;
  Retention kept;
  bool is_json = false, is_dry_run = false, may_replace = false;

  std::string uri() const { return pool_uri(pool); }
};

// What is wrong with a thing that is named is a failure; with its name, a mistake of usage.
int refuse(const Words& words, const Error& error) { return report_about(words.uri(), error); }

std::string time_text(int64_t time_s) {
  const auto seconds = static_cast<time_t>(time_s);
  std::tm parts{};
  char text[32] = "?";
  if (::gmtime_r(&seconds, &parts) != nullptr)
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

int list(const Words& words) {
  const auto all = list_checkpoints(words.uri());
  if (!all) return refuse(words, all.error());
  if (words.is_json) {
    Json told = Json::array();
    for (const CheckpointInfo& c : all.value())
      told.push_back({{"name", c.name},
                      {"comment", c.comment},
                      {"number", c.number},
                      {"time_s", c.time_s},
                      {"size_bytes", c.size_bytes},
                      {"only_bytes", c.only_bytes}});
    show_json({{"checkpoints", told}});
    return 0;
  }
  std::printf("%-19s %12s %12s  %s\n", "made (UTC)", "size", "alone", "name");
  for (const CheckpointInfo& c : all.value())
    std::printf("%-19s %12s %12s  %s%s%s\n", time_text(c.time_s).c_str(),
                format_bytes(c.size_bytes).c_str(), format_bytes(c.only_bytes).c_str(),
                one_line(c.name).c_str(), c.comment.empty() ? "" : "  ",
                one_line(c.comment).c_str());
  return 0;
}

int make(const Words& words) {
  const auto made = make_checkpoint(words.uri(), words.name, words.comment);
  if (made) return 0;
  return words.name.empty() ? report(made.error()) : refuse(words, made.error());
}

int done(const Words& words, const Status& status) {
  return status ? 0 : refuse(words, status.error());
}

int remove(const Words& words) { return done(words, remove_checkpoints(words.uri(), words.names)); }

int rename(const Words& words) {
  const Status renamed = rename_checkpoint(words.uri(), words.name, words.to);
  return words.to.empty() && !renamed ? report(renamed.error()) : done(words, renamed);
}

int prune(const Words& words) {
  const auto all = list_checkpoints(words.uri());
  if (!all) return refuse(words, all.error());
  const auto names = choose_to_prune(all.value(), words.kept);
  if (!names) return report(names.error());
  if (!words.is_dry_run && !names->empty())
    if (Status removed = remove_checkpoints(words.uri(), names.value()); !removed)
      return refuse(words, removed.error());
  for (const std::string& name : names.value())
    std::printf("%s %s\n", words.is_dry_run ? "would remove" : "removed", one_line(name).c_str());
  return 0;
}

int go_back(const Words& words) { return done(words, roll_back(words.uri(), words.name)); }

int verify(const Words& words) {
  const std::string note = find_torn_end(words.uri());
  const auto damaged = verify_checkpoints(words.uri());
  if (!damaged) return refuse(words, damaged.error());
  if (words.is_json) {
    Json told = Json::array();
    for (const DamagedChunk& d : damaged.value())
      told.push_back({{"object", d.object},
                      {"checkpoint", d.checkpoint},
                      {"offset", d.offset},
                      {"why", d.why}});
    Json all = {{"damaged", told}};
    if (!note.empty()) all["note"] = note;
    show_json(all);
  } else {
    if (!note.empty()) std::printf("note: %s\n", one_line(note).c_str());
    for (const DamagedChunk& d : damaged.value())
      std::printf("%s of %s: damaged at byte %llu: %s\n", one_line(d.object).c_str(),
                  d.checkpoint.empty() ? "the last commit" : one_line(d.checkpoint).c_str(),
                  static_cast<unsigned long long>(d.offset), one_line(d.why).c_str());
    if (damaged->empty())
      std::printf("%s: all %sis as it was written\n", words.pool.c_str(),
                  note.empty() ? "" : "that is there ");
  }
  return damaged->empty() ? 0 : kFailed;
}

// The only object, if none is named. Otherwise says why it cannot be known, and sets the status.
std::string object_of(const Words& words, int* status) {
  if (!words.object.empty()) return words.object;
  const auto objects = list_objects(words.uri(), words.name);
  if (!objects) return *status = refuse(words, objects.error()), "";
  if (objects->size() == 1) return objects->front().name;
  std::string names;
  for (const CheckpointObject& o : objects.value())
    names += (names.empty() ? "" : ", ") + one_line(o.name);
  const std::string attempted = "take an object of '" + one_line(words.name) + "': it has ";
  *status = report(
      names.empty() ? Error{ENOENT, attempted + "none: take another checkpoint"}
                    : Error{EINVAL, attempted + "the objects " + names + ": name one by --object"});
  return {};
}

int export_to(const Words& words) {
  int status = 0;
  const std::string object = object_of(words, &status);
  if (status != 0) return status;
  const auto uri = uri_of_checkpoint(words.uri(), words.name, object);
  if (!uri) return refuse(words, uri.error());
  const auto from = open_store(uri.value());
  if (!from) return refuse(words, from.error());
  const auto copied = copy_store_to(*from.value(), words.to, words.may_replace, [](uint64_t) {});
  if (copied) return 0;
  const bool is_damaged = copied.code() == EIO && copied.message().starts_with("read ");
  if (!is_damaged) return report_about(words.to, copied.error());
  return report(
      {EIO, "export '" + one_line(words.name) + "' of " + words.pool +
                ": it is damaged there: " + copied.message() +
                "; `outcore checkpoint verify` shows which are whole; or restore a copy"});
}

int clone(const Words& words) {
  int status = 0;
  const std::string object = object_of(words, &status);
  if (status != 0) return status;
  return done(words, clone_checkpoint(words.uri(), words.name, object, words.to));
}

CommandSyntax& add(CommandSyntax& parent, const char* name, const char* help,
                   const std::shared_ptr<Words>& words, int (*run)(const Words&)) {
  return parent.add(name, help)
      .word("POOL", words->pool, "versioned:FOLDER, or the folder; or rbd://POOL/IMAGE")
      .runs([words, run] { return run(*words); });
}

void add_changes(CommandSyntax& parent, const std::shared_ptr<Words>& words) {
  add(parent, "make", "hold what the pool's stores have, under a name", words, make)
      .word("NAME", words->name, "of the checkpoint")
      .option("--comment", words->comment, "kept with it")
      .may_be_empty()
      .footer("Example:\n  outcore checkpoint make /data/run before-analysis");
  add(parent, "rm", "remove checkpoints, all or none", words, remove)
      .word("NAME", words->names, "of checkpoints")
      .footer("Example:\n  outcore checkpoint rm /data/run step-100 step-200");
  add(parent, "mv", "give a checkpoint another name", words, rename)
      .word("NAME", words->name, "that it has")
      .word("TO", words->to, "that it shall have")
      .footer("Example:\n  outcore checkpoint mv /data/run step-300 submitted");
  add(parent, "prune", "remove all but some", words, prune)
      .option("--last", words->kept.last, "keep the last N")
      .option("--hourly", words->kept.hourly, "and the newest of each of the last N hours")
      .option("--daily", words->kept.daily, "and of each of the last N days (UTC)")
      .flag("--dry-run", words->is_dry_run, "only say which would go")
      .footer("Example:\n  outcore checkpoint prune /data/run --last 3 --hourly 24 --daily 7");
  add(parent, "rollback", "make the objects what they were", words, go_back)
      .word("NAME", words->name, "of the checkpoint")
      .footer("Example:\n  outcore checkpoint rollback /data/run step-300");
}

}  // namespace

void add_checkpoint(CommandSyntax& outcore) {
  CommandSyntax& parent = outcore.add(
      "checkpoint", "checkpoints of a versioned: pool: ls, make, rm, mv, prune, rollback, …");
  parent.footer(
      "Examples:\n  outcore checkpoint ls /data/run\n"
      "  outcore checkpoint export /data/run step-300 state.bin");
  constexpr const char* kJson = "one JSON object in place of text";
  const auto words = std::make_shared<Words>();
  add(parent, "ls", "which there are", words, list)
      .flag("--json", words->is_json, kJson)
      .footer(
          "alone: what removing this one would give back.\n"
          "Example:\n  outcore checkpoint ls /data/run");
  add_changes(parent, words);
  add(parent, "verify", "read everything that is held, and check it", words, verify)
      .flag("--json", words->is_json, kJson)
      .footer(
          "Exit status: 0 all is as it was written; 1 otherwise.\n"
          "Example:\n  outcore checkpoint verify /data/run");
  add(parent, "export", "copy an object as it was into a file", words, export_to)
      .word("NAME", words->name, "of the checkpoint")
      .word("FILE", words->to, "a file, or another store")
      .option("--object", words->object, "which (its only one)")
      .flag("--replace", words->may_replace, "replace what is there")
      .footer("Example:\n  outcore checkpoint export /data/run step-300 state.bin");
  add(parent, "clone", "a new image that begins as an object was (rbd://)", words, clone)
      .word("NAME", words->name, "of the checkpoint")
      .word("TO", words->to, "rbd://POOL/NEW-IMAGE")
      .option("--object", words->object, "which (its only one)")
      .footer("Example:\n  outcore checkpoint clone rbd://far/matrix step-300 rbd://far/what-if");
}

}  // namespace outcore::cli
