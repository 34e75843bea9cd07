#include "sight/commands/terminal.h"

#define NCURSES_NOMACROS
#include <curses.h>
#include <poll.h>
#include <signal.h>
#include <term.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli/assert.h"
#include "cli/interrupts.h"

namespace outcore::cli {
namespace {

// What a handler needs to give the terminal back: it may call nothing that allocates or locks.
struct Restore {
  termios settings{};
  std::array<char, 256> bytes{};
  size_t count = 0;
};
Restore restore;

// What ends a process and nobody else handles. (SIGINT, SIGTERM and SIGHUP are noted.)
constexpr int kEnding[] = {SIGQUIT, SIGABRT, SIGSEGV, SIGBUS,  SIGFPE,  SIGILL,
                           SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ, SIGSYS};

void on_ending(int signal) {
  static_cast<void>(::write(STDOUT_FILENO, restore.bytes.data(), restore.count));
  ::tcsetattr(STDIN_FILENO, TCSANOW, &restore.settings);
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void remember(const char* capability) {
  const char* const text = ::tigetstr(const_cast<char*>(capability));
  if (text == nullptr || text == reinterpret_cast<const char*>(-1)) return;
  // Delays ("$<5>") are for terminals of the last century.
  const size_t length = std::string_view(text).find("$<") != std::string_view::npos
                            ? std::string_view(text).find("$<")
                            : std::strlen(text);
  const size_t count = std::min(length, restore.bytes.size() - restore.count);
  std::memcpy(restore.bytes.data() + restore.count, text, count);
  restore.count += count;
  CLI_CHECK(restore.count <= restore.bytes.size());
}

void handle_endings(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  for (const int signal : kEnding) ::sigaction(signal, &action, nullptr);
}

Error no_terminal(const std::string& why) {
  return {ENOTTY, "open the terminal for outcore top: " + why +
                      ": use `outcore top --once` for one sample as text"};
}

attr_t attribute_of(Look look) {
  const bool has_colors = ::has_colors();
  switch (look) {
    case Look::kBold:
      return A_BOLD;
    case Look::kDim:
      return has_colors ? COLOR_PAIR(4) : A_NORMAL;
    case Look::kReverse:
      return A_REVERSE;
    case Look::kGood:
      return has_colors ? COLOR_PAIR(1) : A_NORMAL;
    case Look::kWarn:
      return has_colors ? COLOR_PAIR(2) | A_BOLD : A_BOLD;
    case Look::kBad:
      return has_colors ? COLOR_PAIR(3) | A_BOLD : A_BOLD | A_UNDERLINE;
    case Look::kPlain:
      break;
  }
  return A_NORMAL;
}

void start_colors() {
  if (!::has_colors()) return;
  ::start_color();
  const bool has_default = ::use_default_colors() == OK;
  const auto back = static_cast<short>(has_default ? -1 : COLOR_BLACK);
  ::init_pair(1, COLOR_GREEN, back);
  ::init_pair(2, COLOR_YELLOW, back);
  ::init_pair(3, COLOR_RED, back);
  ::init_pair(4, COLOR_CYAN, back);
}

Pressed pressed_of(int code) {
  switch (code) {
    case KEY_UP:
      return {Key::kUp};
    case KEY_DOWN:
      return {Key::kDown};
    case KEY_PPAGE:
      return {Key::kPageUp};
    case KEY_NPAGE:
      return {Key::kPageDown};
    case KEY_HOME:
      return {Key::kHome};
    case KEY_END:
      return {Key::kEnd};
    case KEY_ENTER:
    case '\r':
    case '\n':
      return {Key::kEnter};
    case 27:
      return {Key::kEscape};
    case KEY_BACKSPACE:
    case 8:
    case 127:
      return {Key::kBackspace};
    case KEY_RESIZE:
      return {Key::kResize};
    default:
      break;
  }
  if (code >= ' ' && code < 127) return {Key::kLetter, static_cast<char>(code)};
  return {Key::kNone};
}

}  // namespace

Result<std::unique_ptr<Terminal>> Terminal::open(const Glyphs& glyphs) {
  const char* const term = std::getenv("TERM");
  if (::isatty(STDIN_FILENO) == 0 || ::isatty(STDOUT_FILENO) == 0)
    return no_terminal("input and output must be one");
  if (term == nullptr || *term == 0) return no_terminal("TERM is not set");
  int known = 0;
  const std::string named = "TERM=" + std::string(term);
  if (::setupterm(term, STDOUT_FILENO, &known) != OK)
    return no_terminal(named + " is not known here");
  const char* const cursor = ::tigetstr(const_cast<char*>("cup"));
  if (cursor == nullptr || cursor == reinterpret_cast<const char*>(-1))
    return no_terminal("with " + named + " it cannot place its cursor");
  restore = {};
  ::tcgetattr(STDIN_FILENO, &restore.settings);
  catch_interrupts();
  if (::newterm(term, stdout, stdin) == nullptr) return no_terminal(named + " cannot be used");
  for (const char* capability : {"sgr0", "cnorm", "rmcup", "rmkx", "el"}) remember(capability);
  handle_endings(on_ending);
  ::cbreak();
  ::noecho();
  ::nonl();
  ::keypad(stdscr, TRUE);
  ::nodelay(stdscr, TRUE);
  ::set_escdelay(100);  // a key's bytes may come apart over ssh
  ::curs_set(0);
  start_colors();
  return std::unique_ptr<Terminal>(new Terminal(glyphs));
}

Terminal::~Terminal() {
  // Where there is no other screen to go back to, the shell goes on in the last line.
  ::wattrset(stdscr, A_NORMAL);
  ::werase(stdscr);
  ::wrefresh(stdscr);
  ::curs_set(1);
  ::endwin();
  handle_endings(SIG_DFL);
}

size_t Terminal::width() const { return static_cast<size_t>(std::max(1, ::getmaxx(stdscr))); }

size_t Terminal::rows_shown(const Page& page) const {
  const auto height = static_cast<size_t>(std::max(1, ::getmaxy(stdscr)));
  const size_t others = page.head.size() + page.tail.size() + 1;
  return height > others ? height - others : 1;
}

void Terminal::draw(const Page& page, size_t first, size_t selected, const Line& keys) {
  ::werase(stdscr);
  const size_t room = width();
  const int height = ::getmaxy(stdscr);
  int y = 0;
  const auto put = [&](const Line& line, bool is_selected) {
    if (y >= height) return;
    ::wmove(stdscr, y++, 0);
    size_t left = room;
    for (const Span& span : line) {
      const std::string text = cut_end(span.text, left, glyphs_);
      left -= std::min(left, columns_of(text));
      ::wattrset(stdscr, static_cast<int>(attribute_of(span.look) ^ (is_selected ? A_REVERSE : 0)));
      ::waddstr(stdscr, text.c_str());
    }
    if (is_selected) ::waddstr(stdscr, std::string(left, ' ').c_str());
  };
  for (const Line& line : page.head) put(line, false);
  const size_t end = std::min(page.rows.size(), first + rows_shown(page));
  for (size_t i = first; i < end; ++i) put(page.rows[i], i == selected);
  y = std::max(y, height - 1 - static_cast<int>(page.tail.size()));
  for (const Line& line : page.tail) put(line, false);
  y = height - 1;
  put(keys, false);
  ::wattrset(stdscr, A_NORMAL);
  ::wrefresh(stdscr);
}

Pressed Terminal::wait_key(std::chrono::milliseconds time) {
  if (is_interrupted()) return {Key::kGone};
  // What curses has read already is not in the file any more.
  int code = ::wgetch(stdscr);
  if (code == ERR) {
    pollfd input{STDIN_FILENO, POLLIN, 0};
    const int ready = ::poll(&input, 1, static_cast<int>(std::max<int64_t>(0, time.count())));
    if (is_interrupted()) return {Key::kGone};
    code = ::wgetch(stdscr);
    const bool is_gone =
        ready > 0 && code == ERR && (input.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
    if (is_gone) return {Key::kGone};
  }
  return code == ERR ? Pressed{} : pressed_of(code);
}

}  // namespace outcore::cli
