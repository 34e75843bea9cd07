#include "sight/commands/top_window.h"

#include <algorithm>
#include <array>

#include "cli/assert.h"
#include "cli/command.h"
#include "cli/text.h"
#include "sight/commands/buffer_limit.h"
#include "sight/commands/columns.h"

namespace outcore::cli {
namespace {

using Clock = std::chrono::steady_clock;

// The first figures come sooner than all others: nobody waits before an empty screen.
constexpr std::chrono::milliseconds kFirstInterval{250};
constexpr std::chrono::milliseconds kIntervals[] = {
    std::chrono::milliseconds(100),   std::chrono::milliseconds(200),
    std::chrono::milliseconds(500),   std::chrono::milliseconds(1000),
    std::chrono::milliseconds(2000),  std::chrono::milliseconds(5000),
    std::chrono::milliseconds(10000), std::chrono::milliseconds(60000)};
constexpr size_t kTypedMax = 64;

}  // namespace

void TopWindow::run() {
  CLI_CHECK(terminal_ != nullptr);
  auto next = Clock::now() + std::min(kFirstInterval, style_.interval);
  while (true) {
    draw();
    auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now());
    if (style_.is_paused || task_ != nullptr) left = std::min(left, kFirstInterval);
    const Pressed pressed = terminal_->wait_key(std::max(left, std::chrono::milliseconds(0)));
    if (pressed.key == Key::kGone || !press(pressed)) return;
    if (task_ != nullptr && asking_ == Asking::kNothing && pressed.key == Key::kNone) {
      const bool is_over = task_->is_over();  // before its last words are taken
      message_ = task_->text();
      if (is_over) task_.reset();
    }
    if (Clock::now() < next) continue;
    if (!style_.is_paused) look();
    next = Clock::now() + style_.interval;
  }
}

void TopWindow::look() {
  if (const Status seen = watch_.look(); !seen.ok()) message_ = one_line(seen.message());
}

// -- What is shown --

const StoreView* TopWindow::find_store(const RowKey& key) const {
  const ProcessView* const process = watch_.find(key.pid);
  const StoreView* found = nullptr;
  if (process == nullptr) return nullptr;
  process->for_each_store([&](const StoreView& store) {
    if (store.now.uri == key.uri && store.occurrence == key.occurrence) found = &store;
  });
  return found;
}

Page TopWindow::make_page() {
  style_.width = terminal_->width();
  if (is_help_) return help_page(style_);
  const ProcessView* const process = watch_.find(process_.pid);
  if (place_ != Place::kList && process == nullptr) {
    message_ = "process " + std::to_string(process_.pid) + " has ended";
    place_ = Place::kList;
  }
  const StoreView* const store = place_ == Place::kStore ? find_store(store_) : nullptr;
  if (place_ == Place::kStore && store == nullptr) {
    message_ = "it is not mapped any more: " + store_.uri;
    place_ = Place::kProcess;
  }
  CLI_CHECK(place_ == Place::kList || process != nullptr);
  if (place_ != Place::kList) watch_.ask_dirty(process_.pid);
  style_.sort = sort().key;
  style_.is_reversed = sort().is_reversed;
  if (place_ == Place::kStore) return store_page(*process, *store, style_);
  if (place_ == Place::kProcess) {
    Page page = process_page(*process, style_, store_);
    const bool is_there = std::find(page.keys.begin(), page.keys.end(), store_) != page.keys.end();
    if ((is_there && is_chosen_) || page.keys.empty()) return page;
    store_ = page.keys.front();
    return process_page(*process, style_, store_);
  }
  return list_page(watch_, style_);
}

void TopWindow::draw() {
  page_ = make_page();
  const size_t shown = terminal_->rows_shown(page_);
  if (is_help_ || place_ == Place::kStore || page_.keys.empty()) {
    first_ = std::min(first_, page_.rows.size() - std::min(shown, page_.rows.size()));
    terminal_->draw(page_, first_, SIZE_MAX, keys_line());
    return;
  }
  RowKey& selected = place_ == Place::kList ? process_ : store_;
  const auto found = std::find(page_.keys.begin(), page_.keys.end(), selected);
  if (is_chosen_ && found != page_.keys.end())
    at_ = static_cast<size_t>(found - page_.keys.begin());
  at_ = std::min(at_, page_.keys.size() - 1);
  selected = page_.keys[at_];
  CLI_CHECK(page_.rows.size() >= page_.keys.size());
  first_ = std::clamp(first_, at_ + 1 - std::min(shown, at_ + 1), at_);
  CLI_CHECK(first_ <= at_);
  terminal_->draw(page_, first_, at_, keys_line());
}

Line TopWindow::keys_line() const {
  const std::string typed = style_.glyphs.shown(typed_) + "_";
  switch (asking_) {
    case Asking::kFilter:
      return {{"show only what has: " + typed, Look::kBold}};
    case Asking::kLimit:
      return {{"new limit of buffer " + buffer_ + ", as in 16G: " + typed, Look::kBold}};
    case Asking::kWarm:
    case Asking::kEvict: {
      const std::string verb = asking_ == Asking::kWarm ? "warm " : "evict ";
      const std::string tail = " in process " + std::to_string(process_.pid) + "? y/n";
      const size_t room =
          style_.width > verb.size() + tail.size() ? style_.width - verb.size() - tail.size() : 0;
      const StoreView* const store = find_store(store_);
      const std::string name = store != nullptr ? name_of(*store) : store_.uri;
      return {
          {verb + cut_start(style_.glyphs.shown(name), room, style_.glyphs) + tail, Look::kBold}};
    }
    case Asking::kNothing:
      break;
  }
  if (!message_.empty()) return {{style_.glyphs.shown(message_), Look::kWarn}};
  if (is_help_) return {{"any key: back", Look::kReverse}};
  return {{keys_text(), Look::kReverse}};
}

// What fits: at last how to get help, and out.
std::string TopWindow::keys_text() const {
  static constexpr std::array<const char*, 3> kOfList{
      "Enter open  s/S sort  / filter  p pause  +/- interval  r resize  h help  q quit",
      "Enter open  s sort  / filter  p pause  h help  q quit", "h help  q quit"};
  static constexpr std::array<const char*, 3> kOfProcess{
      "Enter open  s/S sort  / filter  w warm  e evict  r resize  h help  Esc back",
      "Enter open  s sort  w warm  e evict  h help  Esc back", "h help  Esc back"};
  if (place_ == Place::kStore) return "arrows scroll  w warm  e evict  Esc back";
  const auto& all = place_ == Place::kList ? kOfList : kOfProcess;
  for (const char* const text : all)
    if (columns_of(text) <= style_.width) return text;
  return all.back();
}

// -- Keys --

bool TopWindow::press(Pressed pressed) {
  if (pressed.key == Key::kNone || pressed.key == Key::kResize) return true;
  if (asking_ != Asking::kNothing) {
    press_asked(pressed);
    return true;
  }
  message_.clear();
  if (is_help_) {
    is_help_ = false;
    first_ = 0;
    return true;
  }
  const auto screen = static_cast<int64_t>(terminal_->rows_shown(page_));
  constexpr int64_t kFar = 1'000'000;
  switch (pressed.key) {
    case Key::kUp:
      move(-1);
      break;
    case Key::kDown:
      move(1);
      break;
    case Key::kPageUp:
      move(-screen);
      break;
    case Key::kPageDown:
      move(screen);
      break;
    case Key::kHome:
      move(-kFar);
      break;
    case Key::kEnd:
      move(kFar);
      break;
    case Key::kEnter:
      open();
      break;
    case Key::kEscape:
      return go_back();
    case Key::kLetter:
      return press_letter(pressed.letter);
    default:
      break;
  }
  return true;
}

bool TopWindow::press_letter(char letter) {
  switch (letter) {
    case 'q':
      return go_back();
    case 'j':
      move(1);
      break;
    case 'k':
      move(-1);
      break;
    case 's':
      if (!page_.next_sort.empty()) sort().key = page_.next_sort;
      break;
    case 'S':
      sort().is_reversed = !sort().is_reversed;
      break;
    case '/':
      asking_ = Asking::kFilter;
      typed_ = style_.filter;
      break;
    case 'p':
    case ' ':
      style_.is_paused = !style_.is_paused;
      break;
    case '+':
      change_interval(true);
      break;
    case '-':
      change_interval(false);
      break;
    case 'r':
      ask_limit();
      break;
    case 'w':
      ask_task(Asking::kWarm);
      break;
    case 'e':
      ask_task(Asking::kEvict);
      break;
    case 'h':
    case '?':
      is_help_ = true;
      first_ = 0;
      break;
    default:
      message_ = std::string("'") + letter + "' is not a key here: h lists them";
  }
  return true;
}

void TopWindow::move(int64_t rows) {
  const auto last = [](size_t count) { return static_cast<int64_t>(count == 0 ? 0 : count - 1); };
  if (place_ == Place::kStore || page_.keys.empty()) {  // draw() keeps it within the page
    first_ = static_cast<size_t>(
        std::clamp(static_cast<int64_t>(first_) + rows, int64_t{0}, last(page_.rows.size())));
    return;
  }
  is_chosen_ = true;
  at_ = static_cast<size_t>(
      std::clamp(static_cast<int64_t>(at_) + rows, int64_t{0}, last(page_.keys.size())));
  (place_ == Place::kList ? process_ : store_) = page_.keys[at_];
}

void TopWindow::open() {
  if (page_.keys.empty() || place_ == Place::kStore) return;
  if (place_ == Place::kList) store_ = {};
  place_ = place_ == Place::kList ? Place::kProcess : Place::kStore;
  style_.filter.clear();
  first_ = at_ = 0;
  is_chosen_ = false;
}

bool TopWindow::go_back() {
  first_ = at_ = 0;
  if (!style_.filter.empty() && place_ != Place::kStore) {
    style_.filter.clear();
    return true;
  }
  if (place_ == Place::kList) return false;
  is_chosen_ = true;  // where one came from
  place_ = place_ == Place::kStore ? Place::kProcess : Place::kList;
  return true;
}

void TopWindow::change_interval(bool is_longer) {
  const auto end = std::end(kIntervals);
  if (is_longer) {
    const auto next = std::upper_bound(std::begin(kIntervals), end, style_.interval);
    if (next != end) style_.interval = *next;
  } else {
    const auto next = std::lower_bound(std::begin(kIntervals), end, style_.interval);
    if (next != std::begin(kIntervals)) style_.interval = *(next - 1);
  }
}

// -- What is asked, and done --

void TopWindow::press_asked(Pressed pressed) {
  const bool is_question = asking_ == Asking::kWarm || asking_ == Asking::kEvict;
  if (is_question) {
    if (pressed.key == Key::kLetter && (pressed.letter == 'y' || pressed.letter == 'Y'))
      start_task(asking_ == Asking::kWarm ? "warm" : "evict");
    asking_ = Asking::kNothing;  // any other key: no
    return;
  }
  if (pressed.key == Key::kEscape) asking_ = Asking::kNothing;
  if (pressed.key == Key::kBackspace && !typed_.empty()) typed_.pop_back();
  if (pressed.key == Key::kLetter && typed_.size() < kTypedMax) typed_ += pressed.letter;
  if (pressed.key == Key::kEnter) answer();
}

void TopWindow::answer() {
  CLI_CHECK(asking_ == Asking::kFilter || asking_ == Asking::kLimit);
  if (asking_ == Asking::kFilter) style_.filter = typed_;
  if (asking_ == Asking::kLimit) set_limit();
  asking_ = Asking::kNothing;
}

void TopWindow::ask_limit() {
  const ProcessView* const process = watch_.find(process_.pid);
  if (process == nullptr) return;
  for (const RuntimeView& runtime : process->runtimes) {
    if (runtime.now.shared_buffer.empty()) continue;
    buffer_ = runtime.now.shared_buffer;
    typed_.clear();
    asking_ = Asking::kLimit;
    return;
  }
  message_ = "it has a budget of its own: start it by `outcore run --buffer NAME` to resize it";
}

void TopWindow::set_limit() {
  CLI_CHECK(!buffer_.empty());
  const Result<uint64_t> bytes = parse_size(typed_);
  if (!bytes) {
    message_ = bytes.message();
    return;
  }
  const Status done = set_buffer_limit(buffer_, bytes.value());
  message_ = done.ok() ? "buffer " + buffer_ + " may have " + format_bytes(bytes.value()) + " now"
                       : one_line(done.message());
}

void TopWindow::ask_task(Asking what) {
  if (place_ == Place::kList || find_store(store_) == nullptr)
    message_ = "open a process (Enter) and select one of its files first";
  else if (task_ != nullptr && !task_->is_over())
    message_ = "one file at a time: " + task_->text();
  else if (const auto program = FileTask::program_of(process_.pid); !program)
    message_ = program.message();
  else
    asking_ = what;
}

void TopWindow::start_task(const char* verb) {
  const StoreView* const store = find_store(store_);
  const Result<RunningProgram> program = FileTask::program_of(process_.pid);
  if (!program || store == nullptr) {
    message_ = program ? "it is not mapped any more" : program.message();
    return;
  }
  CLI_CHECK(task_ == nullptr || task_->is_over());
  task_ = std::make_unique<FileTask>(verb, program.value(), name_of(*store), store->now.size_bytes);
  message_ = task_->text();
}

}  // namespace outcore::cli
