#include "bench/ycsb_client.h"

#include "bench/record_file.h"

namespace outcore::bench {

void YcsbClient::do_next() {
  const YcsbOperation operation = mix_.next(random_);
  if (operation == YcsbOperation::kInsert) {
    counts_.wrong += !insert();
    return;
  }
  const uint64_t key = RecordFile::key_of(seed_, choice_.next(numbers_.count(), random_));
  bool is_right = false;
  switch (operation) {
    case YcsbOperation::kRead:
      is_right = read(key);
      break;
    case YcsbOperation::kUpdate:
      is_right = update(key);
      break;
    case YcsbOperation::kReadModifyWrite:
      is_right = read_and_update(key);
      break;
    case YcsbOperation::kScan:
      is_right = scan(key);
      break;
    case YcsbOperation::kInsert:
      break;
  }
  counts_.wrong += !is_right;
}

bool YcsbClient::read(uint64_t key) {
  ++counts_.reads;
  return table_.read(key, copy_) && copy_.is_whole(key);
}

bool YcsbClient::update(uint64_t key) {
  const bool is_done = table_.update(key);
  counts_.updates += is_done;
  return is_done;
}

bool YcsbClient::read_and_update(uint64_t key) {
  ++counts_.reads;
  const bool is_done = table_.read_and_update(key, copy_);
  counts_.updates += is_done;
  return is_done && copy_.is_whole(key);
}

bool YcsbClient::insert() {
  const uint64_t number = numbers_.claim();
  const bool is_done = table_.insert(RecordFile::key_of(seed_, number), number);
  numbers_.publish(number);
  ++counts_.inserts;
  return is_done;
}

// The first key is there, so that the scan begins with it; the others follow in order.
bool YcsbClient::scan(uint64_t key) {
  table_.scan(key, 1 + random_.below(YcsbMix::kScanRecordsMax), entries_);
  ++counts_.scans;
  counts_.scanned += entries_.size();
  bool is_right = !entries_.empty() && entries_.front().key == key;
  for (uint64_t i = 0; i < entries_.size(); ++i) {
    is_right &= i == 0 || entries_[i - 1].key < entries_[i].key;
    is_right &= table_.read_entry(entries_[i], copy_) && copy_.is_whole(entries_[i].key);
  }
  return is_right;
}

}  // namespace outcore::bench
