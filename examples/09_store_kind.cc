// A kind of store of one's own, by a scheme: vault:NAME is a file in $VAULT whose bytes are kept
// scrambled. Registered, it is known wherever a URI is taken, and so is what it can do beside:
// here its catalog. Compile: c++ -std=c++20 09_store_kind.cc $(pkg-config --cflags --libs outcore)
#include <outcore/runtime.h>
#include <outcore/store_kind.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>

using namespace outcore;
namespace fs = std::filesystem;

static fs::path path_of(const StoreUri& uri) { return fs::path(std::getenv("VAULT")) / uri.path; }

class Vault : public Store {  // what is not said here is as a store has it by default
 public:
  Vault(std::shared_ptr<Store> file, std::byte key) : file_(std::move(file)), key_(key) {}
  uint64_t size_bytes() const override { return file_->size_bytes(); }
  int read(uint64_t offset, std::span<std::byte> into) override {
    const int error = file_->read(offset, into);
    for (std::byte& byte : into) byte ^= key_;
    return error;
  }
  int write(uint64_t offset, std::span<const std::byte> from) override {
    std::vector<std::byte> scrambled(from.begin(), from.end());
    for (std::byte& byte : scrambled) byte ^= key_;
    return file_->write(offset, scrambled);
  }
  int sync() override { return file_->sync(); }
  std::string uri() const override { return "vault:" + file_->uri(); }
  std::string identity() const override { return "vault " + file_->identity(); }

 private:
  std::shared_ptr<Store> file_;
  std::byte key_;
};

static StoreKind vault() {
  StoreKind kind;
  kind.scheme = "vault";
  kind.syntax = "vault:NAME?key=1-255";
  kind.summary = "a scrambled file in $VAULT";
  kind.parameters = {"key"};
  kind.open = [](const StoreUri& uri, const OpenOptions& options,
                 const StoreLimits&) -> Result<std::shared_ptr<Store>> {
    const auto key = uri.count_of("key", 42);
    if (!key) return key.error();
    auto file = open_store(path_of(uri), options);
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
  return kind;
}

int main() {
  if (std::getenv("VAULT") == nullptr) return std::fputs("set VAULT to a folder\n", stderr), 2;
  if (Status s = register_store_kind(vault()); !s) return std::puts(s.message().c_str()), 1;
  auto runtime = Runtime::start({.budget_bytes = 16 << 20}).value();
  const uint64_t count = 4'000'000, bytes = count * sizeof(uint64_t);
  auto region =
      runtime.map("vault:numbers?key=7",
                  {.access = Access::kReadWrite, .size_bytes = bytes, .may_create = true});
  if (!region) return std::puts(region.message().c_str()), 1;
  for (uint64_t i = 0; i < count; ++i) region->as<uint64_t>()[i] = i;
  if (Status s = region->unmap(); !s) return std::puts(s.message().c_str()), 1;
  const auto kept = list_stores("vault:");
  if (!kept) return std::puts(kept.message().c_str()), 1;
  for (const StoreInfo& one : kept.value())
    std::printf("%s: %llu bytes\n", one.name.c_str(),
                static_cast<unsigned long long>(one.size_bytes));
  return remove_store("vault:numbers").ok() ? 0 : 1;
}
