# SPDX-License-Identifier: MIT
#
# A thin front for Meson: the few commands that a newcomer needs, each of which
# first installs what it lacks (scripts/setup). All rules of the build itself
# are in meson.build. What building prints goes to stderr, so that the output
# of the program alone is on stdout.

BUILD  ?= build
PREFIX ?= /usr/local
ARGS   ?=

# The lab: a real kernel in QEMU (docs/lab.md).
KERNEL  ?= 7.3
JOB     ?= bench
CLOCK   ?= wall
MACHINE ?=
CONFIG  ?=
MODULES ?=
SEED    ?=
CALLS   ?=

.PHONY: all bench test benchmark install clean format help lab lab-compare lab-before-after \
	setup-build setup-install setup-test setup-lab

all: setup-build $(BUILD)/build.ninja
	@ninja -C $(BUILD) >&2

bench: all
	@$(BUILD)/dmamap bench $(ARGS)

benchmark: all
	@$(BUILD)/benchmark/engine-benchmark $(ARGS)
	@$(BUILD)/benchmark/bounce-benchmark

test: setup-test
	@scripts/test $(ARGS)

lab: setup-lab all
	@lab/run --kernel '$(KERNEL)' --job '$(JOB)' --clock '$(CLOCK)' \
		$(if $(MACHINE),--machine '$(MACHINE)') $(if $(CONFIG),--config '$(CONFIG)') \
		$(if $(MODULES),--modules '$(MODULES)') $(if $(SEED),--set 'SEED=$(SEED)') \
		$(if $(CALLS),--set 'CALLS=$(CALLS)') $(ARGS)

lab-compare: setup-lab all
	@lab/compare '$(A)' '$(B)' $(ARGS) $(if $(MACHINE),-- --machine '$(MACHINE)')

lab-before-after: setup-lab all
	@lab/before-after $(ARGS)

install: setup-install $(BUILD)/build.ninja
	@meson setup --reconfigure --prefix=$(PREFIX) $(BUILD) >&2
	@ninja -C $(BUILD) >&2
	@meson install --no-rebuild -C $(BUILD) $(if $(DESTDIR),--destdir $(abspath $(DESTDIR)))
	@if [ -z "$(DESTDIR)" ] && [ "$$(id -u)" -eq 0 ]; then PATH=$$PATH:/usr/sbin:/sbin ldconfig; fi

clean:
	@rm -rf $(BUILD) build-*/

format:
	@git ls-files -z --cached --others --exclude-standard -- '*.c' '*.h' '*.cpp' | \
		xargs -0 clang-format -i

help:
	@echo 'make                build dmamap into $(BUILD)/'
	@echo 'make bench          build it, then measure: $(BUILD)/dmamap bench $$(ARGS)'
	@echo 'make test           build it in four ways and run all tests; ARGS: only these steps'
	@echo 'make benchmark      build it, then measure the engine alone'
	@echo 'make lab            boot KERNEL (7.3) in QEMU and run JOB (bench) there; docs/lab.md'
	@echo 'make lab-compare    bench kernels A and B by counted instructions, name what differs'
	@echo 'make lab-before-after  the headline results on real kernels'
	@echo 'make install        install below PREFIX (/usr/local), inside DESTDIR if given'
	@echo 'make format         format the C sources with clang-format 14'
	@echo 'make clean          remove what was built'

setup-build setup-install setup-test setup-lab: setup-%:
	@scripts/setup $*

$(BUILD)/build.ninja: | setup-build
	@meson setup --prefix=$(PREFIX) $(BUILD) >&2
