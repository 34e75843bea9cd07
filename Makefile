# The front door. `make help` says what there is; tools/ does the work.
PREFIX ?= /usr/local
JOBS ?= $(shell nproc)
export JOBS

.DEFAULT_GOAL := help
.PHONY: help packages build demo test test-qemu bench bench-tuning bench-papers bench-doors bench-far bench-arrays check docs
.PHONY: format asan tsan install wheel deb clean

help:  ## say what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s%s\n", $$1, $$2 }' Makefile
	@echo "  (PREFIX=$(PREFIX), JOBS=$(JOBS); stages of the tests alone: tools/test.sh list)"

packages:
	@tools/install_packages.sh build

build: packages  ## the library, the command and occ, at build/bin: all that `make install` installs
	@cmake -S . -B build -G Ninja $(CMAKE_OPTIONS) >/dev/null
	@cmake --build build -j $(JOBS) --target installable

demo:  ## sort this machine's files, search its packages, in a quarter of their size, beside mmap
	@tools/demo.sh

test:  ## checks, tests with g++, clang and sanitizers, as nobody, installed (20 minutes, the first time half an hour; tools/test.sh list)
	@tools/test.sh

test-qemu:  ## conformance on the distribution's own 6.1 kernel, in an emulator
	@tools/test.sh qemu

bench:  ## the table of figures, on a fast device and on the disk (root)
	@tools/bench.sh

bench-doors:  ## `outcore run` and Python beside mmap (root, 20 minutes; OPTIONS=--quick: 4; OPTIONS=--papers: databases, llama.cpp)
	@tools/bench_doors.sh $(OPTIONS)

bench-tuning:  ## default settings beside the best by hand and mmap (root, an hour; OPTIONS=--rows NAME…)
	@tools/bench_tuning.sh $(OPTIONS)

bench-papers:  ## the papers' experiments at a small size (root, 30 minutes; OPTIONS='--repeats 3': medians)
	@tools/bench_papers.sh $(OPTIONS)

bench-far:  ## far memory beside network, servers, swap (root, 30 minutes; OPTIONS=--quick: 6)
	@tools/bench_far.sh $(OPTIONS)

bench-arrays:  ## named arrays beside HDF5, NetCDF, PnetCDF, ADIOS (30 minutes; OPTIONS=--quick: 2)
	@tools/bench_arrays.sh $(OPTIONS)

check:  ## layers, sizes, banned calls, clang-format, clang-tidy
	@tools/test.sh tools tidy

docs:  ## this documentation as a site: build/site/index.html (needs no network when it is read)
	@tools/install_packages.sh docs
	@tools/docs.sh

format:  ## format the C++ and C
	@tools/format.sh

asan:  ## tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@tools/test.sh asan

tsan:  ## tests under ThreadSanitizer
	@tools/test.sh tsan

install: build  ## install library, headers, command, man page and completion into PREFIX
	@cmake --install build --prefix "$(PREFIX)"

wheel: packages  ## a Python wheel that installs without a compiler: build/wheels/
	@tools/wheel.sh

deb: packages  ## a Debian package of library, command and occ: build/outcore_*.deb
	@tools/deb.sh

clean:  ## remove what was built
	rm -rf build build-*
