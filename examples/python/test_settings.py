import json
import unittest
import urllib.error

from envtest import ControlPlane

SETTINGS = "/api/v1/namespaces/default/configmaps"


def named(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


class Settings(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(ControlPlane())

    def test_a_watch_sees_each_change_in_order(self):
        start = self.cluster.request("GET", SETTINGS)["metadata"]["resourceVersion"]
        with self.cluster.open("GET", f"{SETTINGS}?watch=true&timeoutSeconds=300&resourceVersion={start}") as events:
            self.cluster.request("POST", SETTINGS, named("one", color="red"))
            merge = "application/merge-patch+json"
            self.cluster.request("PATCH", SETTINGS + "/one", {"data": {"color": "blue"}}, content_type=merge)
            self.cluster.request("DELETE", SETTINGS + "/one")
            seen = []
            for line in events:
                event = json.loads(line)
                seen.append((event["type"], event["object"]["data"]["color"]))
                if event["type"] == "DELETED":
                    break
        self.assertEqual(seen, [("ADDED", "red"), ("MODIFIED", "blue"), ("DELETED", "blue")])

    def test_what_is_wrong_is_refused_with_its_field(self):
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.cluster.request("POST", SETTINGS, named("Not A Name"))
        with refused.exception as answer:
            status = json.load(answer)
        self.assertEqual((status["code"], status["details"]["causes"][0]["field"]), (422, "metadata.name"))


if __name__ == "__main__":
    unittest.main()
