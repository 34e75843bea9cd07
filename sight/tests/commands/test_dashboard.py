"""docs/dashboards/outcore.json: what it asks for is what `outcore export` gives.

That its queries are PromQL is checked by a parser of it in python/tests/check_metrics.py."""

import json
import pathlib
import re
import unittest

import programs

BOARD = pathlib.Path(__file__).resolve().parents[3] / "docs/dashboards/outcore.json"


class Dashboard(programs.SightTest):
    def setUp(self):
        super().setUp()
        self.board = json.loads(BOARD.read_text(encoding="utf-8"))
        self.panels = self.board["panels"]

    def queries(self):
        yield from ((panel["title"], target["expr"]) for panel in self.panels
                    for target in panel["targets"])
        for variable in self.board["templating"]["list"]:
            if variable["type"] == "query":
                yield variable["name"], variable["query"]["query"]

    def test_every_metric_is_one_that_export_gives(self):
        text = self.run_outcore("export", "--pid", self.start_scan().pid).stdout.decode()
        given = set(re.findall(r"(?m)^(outcore_\w+)\{", text))
        asked = {(title, name) for title, query in self.queries()
                 for name in re.findall(r"\boutcore_\w+", query)}
        self.assertGreater(len(asked), 15)
        self.assertEqual({one for one in asked if one[1] not in given}, set())

    def test_every_label_is_one_that_export_gives(self):
        text = self.run_outcore("export", "--pid", self.start_scan().pid).stdout.decode()
        given = set(re.findall(r'[{,](\w+)="', text))
        for title, query in self.queries():
            asked = set(re.findall(r'[{,]\s*(\w+)=~', query))
            for labels in re.findall(r"\bby \(([^)]*)\)", query):
                asked |= {label.strip() for label in labels.split(",")}
            self.assertLessEqual(asked, given, title)

    def test_panels_have_numbers_of_their_own_and_do_not_overlap(self):
        numbers = [panel["id"] for panel in self.panels]
        self.assertEqual(len(set(numbers)), len(numbers))
        titles = [panel["title"] for panel in self.panels]
        self.assertEqual(len(set(titles)), len(titles))
        cells = [(x, y) for panel in self.panels for at in [panel["gridPos"]]
                 for x in range(at["x"], at["x"] + at["w"])
                 for y in range(at["y"], at["y"] + at["h"])]
        self.assertEqual(len(set(cells)), len(cells))
        self.assertEqual({x for x, _ in cells}, set(range(24)))
        for panel in self.panels:
            references = [target["refId"] for target in panel["targets"]]
            self.assertEqual(len(set(references)), len(references))

    def test_it_is_of_a_schema_that_grafana_10_and_11_read_and_bound_to_no_installation(self):
        self.assertIn(self.board["schemaVersion"], range(36, 42))
        self.assertNotIn("id", self.board, "whoever imports it gives the number")
        variables = {variable["name"]: variable for variable in self.board["templating"]["list"]}
        self.assertEqual(variables["datasource"]["type"], "datasource")
        used = re.findall(r'"uid": "(\$\{\w+\})"', BOARD.read_text(encoding="utf-8"))
        self.assertEqual(set(used), {"${datasource}"})
        for panel in self.panels:
            self.assertEqual(panel["datasource"]["uid"], "${datasource}")
        for _, query in self.queries():
            for name in re.findall(r"\$(\w+)", query):
                self.assertTrue(name == "__rate_interval" or name in variables, query)


if __name__ == "__main__":
    unittest.main()
