// dlm_alloc by several threads: nothing overlaps, and what is freed is used again.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

namespace {

struct Piece {
  unsigned char* at;
  size_t size_bytes;
  unsigned char mark;
};

bool holds(const Piece& piece) {
  for (size_t i = 0; i < piece.size_bytes; ++i)
    if (piece.at[i] != piece.mark) return false;
  return true;
}

void work(unsigned seed, bool* is_right) {
  std::vector<Piece> pieces;
  uint64_t state = seed * 2654435761u + 1;
  for (int step = 0; step < 400; ++step) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const size_t size_bytes = 1 + (state >> 33) % (step % 20 == 0 ? 2000000 : 9000);
    auto* at = static_cast<unsigned char*>(dlm_alloc(size_bytes));
    if (at == nullptr || reinterpret_cast<uintptr_t>(at) % 64 != 0) return;
    const auto mark = static_cast<unsigned char>(state >> 20);
    std::memset(at, mark, size_bytes);
    pieces.push_back({at, size_bytes, mark});
    if (step % 3 != 0) continue;
    const size_t which = (state >> 40) % pieces.size();
    if (!holds(pieces[which])) return;
    dlm_free(pieces[which].at);
    pieces[which] = pieces.back();
    pieces.pop_back();
  }
  for (const Piece& piece : pieces) {
    if (!holds(piece)) return;
    dlm_free(piece.at);
  }
  *is_right = true;
}

}  // namespace

int main() {
  bool is_right[4] = {};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i, &is_right[i]);
  for (std::thread& thread : threads) thread.join();
  dlm_free(nullptr);
  for (const size_t much : {SIZE_MAX, SIZE_MAX - 4095, size_t{1} << 42})
    if (dlm_alloc(much) != nullptr || oc_dlm_array(much) != nullptr) is_right[0] = false;
  const bool all = is_right[0] && is_right[1] && is_right[2] && is_right[3];
  std::printf(all ? "right\n" : "wrong\n");
  return all ? 0 : 1;
}
