"""The metrics that a run leaves at its end, where they go to a descriptor."""

import json
import subprocess
import tempfile

import programs


class MetricsAtExit(programs.SightTest):
    def test_a_file_without_a_name_gets_them_by_its_descriptor(self):
        with tempfile.TemporaryFile(dir=self.folder) as output:
            subprocess.run(self.words_of_scan("--metrics-at-exit", "/dev/stderr"), check=True,
                           cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=output, timeout=programs.WAIT_S)
            output.seek(0)
            lines = output.read().decode().splitlines()
        self.assertEqual(len(lines), 1, lines)
        self.assertGreater(json.loads(lines[0])["counters"]["fills"], 0)


if __name__ == "__main__":
    programs.unittest.main()
