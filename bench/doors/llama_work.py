"""LlamaWork: llama.cpp with its weights mapped, a file of three times the budget."""

import json

from place import MIB, SOURCES, own_line, run_quietly, take_report, under_outcore

MAKER, PROGRAM = SOURCES / "llama_model.py", SOURCES / "llama_tokens.py"
EVEN, ZIPF = "even", "zipf"  # routers
NAMES = {EVEN: "llama.gguf", ZIPF: "llama-zipf.gguf"}
LAYERS, EXPERTS = 8, 32  # of a layer: 54 MiB
START_LAYERS, START_EXPERTS = 1, 4
CONTEXT_BYTES = MIB // 4  # of a layer: what llama.cpp keeps of the tokens before


class LlamaWork:
    memories = ["mmap", "mmap-random", "outcore"]
    threads = 1

    def __init__(self, place, name, what, router):
        self.place, self.name, self._what, self._router = place, name, what, router
        self._layers = place.scale(LAYERS)
        self.data_bytes = self.budget_bytes = 0  # known when it is made

    def prepare(self):
        self._file = self._make(NAMES[self._router], self._layers, EXPERTS, self._router)
        self._start_file = self._make("llama-start.gguf", START_LAYERS, START_EXPERTS, EVEN)
        self.data_bytes = self._file.stat().st_size
        self.budget_bytes = self.data_bytes // 3
        self.answer_bytes = (self._layers - START_LAYERS) * CONTEXT_BYTES
        self._answer = self._answer_in_memory()
        return [self._file]

    def _make(self, name, layers, experts, router):
        return self.place.make(
            self.place.folder / name,
            lambda at: run_quietly([self.place.programs_python, MAKER, at, layers, experts,
                                    router]))

    def _answer_in_memory(self):
        """The tokens, and how likely each was, of a run that maps nothing and has no limit."""
        said = run_quietly([self.place.programs_python, PROGRAM, self._file, "memory", self._what])
        return json.loads(said.splitlines()[-1])["answer"]

    def command(self, memory, is_start):
        file = self._start_file if is_start else self._file
        words = [self.place.programs_python, PROGRAM, file, "mmap", self._what]
        environment = {"PYTHONDONTWRITEBYTECODE": "1"}
        if memory == "mmap-random":
            environment["LD_PRELOAD"] = self.place.mmap_random
        if memory == "outcore":
            words = under_outcore(self.place, self.budget_bytes) + words
        self._is_under_outcore = memory == "outcore"
        return list(map(str, words)), environment

    def result(self, taken):
        line = own_line(taken)
        if line:
            line["is_right"] = line["answer"] == self._answer
        if self._is_under_outcore:
            line.update(take_report(self.place))
        return line

    def clean_up(self):
        pass
