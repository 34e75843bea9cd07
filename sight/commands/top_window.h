// TopWindow: `outcore top` on a terminal: which page is shown, what is selected, what keys do. One
// thread.
#pragma once

#include <memory>
#include <string>

#include "sight/commands/file_task.h"
#include "sight/commands/pages.h"
#include "sight/commands/terminal.h"
#include "sight/commands/watch.h"

namespace outcore::cli {

class TopWindow {
 public:
  TopWindow(Watch& watch, std::unique_ptr<Terminal> terminal, const PageStyle& style)
      : watch_(watch), terminal_(std::move(terminal)), style_(style) {
    sorts_[0] = {style.sort, style.is_reversed};
  }
  // Until the user quits, or a signal tells it to. REQUIRES: the watch has looked.
  void run();

 private:
  enum class Place : uint8_t { kList, kProcess, kStore };
  enum class Asking : uint8_t { kNothing, kFilter, kLimit, kWarm, kEvict };
  struct Sort {
    std::string key;
    bool is_reversed = false;
  };

  void look();
  void draw();
  Page make_page();
  Line keys_line() const;
  std::string keys_text() const;
  Sort& sort() { return sorts_[place_ == Place::kList ? 0 : 1]; }
  const StoreView* find_store(const RowKey& key) const;

  // False: quit.
  bool press(Pressed pressed);
  bool press_letter(char letter);
  void press_asked(Pressed pressed);
  void move(int64_t rows);
  void open();
  bool go_back();
  void change_interval(bool is_longer);
  void ask_limit();
  void ask_task(Asking what);
  void answer();
  void set_limit();
  void start_task(const char* verb);

  Watch& watch_;
  std::unique_ptr<Terminal> terminal_;
  PageStyle style_;
  Place place_ = Place::kList;
  bool is_help_ = false;
  Sort sorts_[2] = {{"stalled"}, {"stalled"}};  // of processes, of files
  RowKey process_, store_;                      // selected
  size_t first_ = 0, at_ = 0;                   // row on top; row that is selected
  bool is_chosen_ = false;  // by the user: it stays selected wherever it is sorted to
  Page page_;
  std::string message_, typed_, buffer_;
  Asking asking_ = Asking::kNothing;
  std::unique_ptr<FileTask> task_;
};

}  // namespace outcore::cli
