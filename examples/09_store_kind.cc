// A kind of store of one's own, by a scheme: vault:NAME is a file in $VAULT whose bytes are kept
// scrambled. Registered, it is known wherever a URI is taken, and so is what it can do beside:
// here its catalog. Compile: c++ -std=c++20 09_store_kind.cc $(pkg-config --cflags --libs outcore)
#include <outcore/runtime.h>
#include <outcore/store_kind.h>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
using namespace outcore;
namespace fs = std::filesystem;
static fs::path path_of(const StoreUri& uri) { return fs::path(std::getenv("VAULT")) / uri.path; }

struct Vault : Store {  // what is not said here is as a store has it by default
  Vault(std::shared_ptr<Store> of, std::byte by) : file(std::move(of)), key(by) {}
  uint64_t size_bytes() const override { return file->size_bytes(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    const int error = file->read(offset, into);
    for (std::byte& byte : into) byte ^= key;
    return error;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    std::vector<std::byte> scrambled(from.begin(), from.end());
    for (std::byte& byte : scrambled) byte ^= key;
    return file->write(offset, scrambled);
  }
  int sync() override { return file->sync(); }
  std::string uri() const override { return "vault:" + file->uri(); }
  std::string identity() const override { return "vault " + file->identity(); }
  const std::shared_ptr<Store> file;
  const std::byte key;
};

int main() {
  StoreKind kind{"vault", "vault:NAME?key=1-255", "a scrambled file in $VAULT", {"key"}, {}};
  kind.open = [](const StoreUri& uri, const OpenOptions& options,
                 const StoreLimits&) -> Result<std::shared_ptr<Store>> {
    const auto key = uri.count_of("key", 42);
    auto file = key ? open_store(path_of(uri), options) : key.error();
    if (!file) return file.error();
    return std::shared_ptr<Store>(std::make_shared<Vault>(file.value(), std::byte(key.value())));
  };
  kind.list = [](const StoreUri& uri) -> Result<std::vector<StoreInfo>> {
    std::vector<StoreInfo> all;
    for (const auto& one : fs::directory_iterator(path_of(uri)))
      all.push_back({.name = one.path().filename(), .size_bytes = one.file_size()});
    return all;
  };
  kind.remove = [](const StoreUri& uri, bool) -> Status {
    return fs::remove(path_of(uri)) ? Status() : Error{ENOENT, uri.text + ": there is none"};
  };
  if (!register_store_kind(kind) || !std::getenv("VAULT")) return std::puts("set VAULT"), 2;
  auto runtime = Runtime::start({.budget_bytes = 16 << 20}).value();
  const MapOptions how{.access = Access::kReadWrite, .size_bytes = 32'000'000, .may_create = true};
  Region region = runtime.map("vault:numbers?key=7", how).value();
  for (uint64_t i = 0; i < 4'000'000; ++i) region.as<uint64_t>()[i] = i;
  if (Status s = region.unmap(); !s) return std::puts(s.message().c_str()), 1;
  for (const auto kept = list_stores("vault:"); const StoreInfo& one : kept.value())
    std::printf("%s: %llu bytes\n", one.name.c_str(), 0ULL + one.size_bytes);
  return remove_store("vault:numbers").ok() ? 0 : 1;
}
