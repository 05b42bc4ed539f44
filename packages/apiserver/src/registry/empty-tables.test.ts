/** Cells of objects that have nothing in them, not even a name. Source: pkg/printers/internalversion/printers.go */
import assert from "node:assert/strict";
import { test } from "node:test";
import { resourcesForTests } from "../testing/kind-rules.ts";
import { agesAt } from "./generic/ages.ts";

const [none, unknown] = ["<none>", "<unknown>"];
const binding = ["", "/", unknown, "", "", ""];
const replicas = [unknown, "", "", none];

for (const [resource, want] of Object.entries({
  "mutatingwebhookconfigurations.admissionregistration.k8s.io": ["", 0, unknown],
  "validatingwebhookconfigurations.admissionregistration.k8s.io": ["", 0, unknown],
  "apiservices.apiregistration.k8s.io": ["", "Local", "Unknown", unknown],
  "controllerrevisions.apps": ["", none, 0, unknown],
  "daemonsets.apps": ["", 0, 0, 0, 0, 0, none, ...replicas],
  "deployments.apps": ["", "0/0", 0, 0, ...replicas],
  "replicasets.apps": ["", 0, 0, 0, ...replicas],
  "statefulsets.apps": ["", "0/0", unknown, "", ""],
  "horizontalpodautoscalers.autoscaling": ["", "/", none, "<unset>", 0, 0, unknown],
  "cronjobs.batch": ["", "", "<unset>", 0, none, ...replicas],
  "jobs.batch": ["", "0/1", "", ...replicas],
  "certificatesigningrequests.certificates.k8s.io": ["", unknown, none, "", none, "Pending"],
  "leases.coordination.k8s.io": ["", "", unknown],
  "endpointslices.discovery.k8s.io": ["", "", "<unset>", "<unset>", unknown],
  "flowschemas.flowcontrol.apiserver.k8s.io": ["", "", 0, none, unknown, "?"],
  "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": ["", "", none, none, none, none, unknown],
  "storageversions.internal.apiserver.k8s.io": ["", "<unset>", "<unset>", unknown],
  "ingressclasses.networking.k8s.io": ["", "", none, unknown],
  "ingresses.networking.k8s.io": ["", none, "*", "", "80", unknown],
  "networkpolicies.networking.k8s.io": ["", none, unknown],
  "runtimeclasses.node.k8s.io": ["", "", unknown],
  "poddisruptionbudgets.policy": ["", "N/A", "N/A", 0, unknown],
  "podsecuritypolicies.policy": ["", "false", "", "", "", "", "", false, ""],
  "clusterrolebindings.rbac.authorization.k8s.io": binding,
  "rolebindings.rbac.authorization.k8s.io": binding,
  "priorityclasses.scheduling.k8s.io": ["", 0, false, unknown],
  "csidrivers.storage.k8s.io": ["", true, false, false, "<unset>", false, none, unknown],
  "csinodes.storage.k8s.io": ["", 0, unknown],
  "csistoragecapacities.storage.k8s.io": ["", "", "<unset>"],
  "storageclasses.storage.k8s.io": ["", "", "Delete", "Immediate", false, unknown],
  "volumeattachments.storage.k8s.io": ["", "", "", "", false, unknown],
})) {
  test(`${resource}: the cells of nothing`, () => {
    const table = resourcesForTests.find((one) => `${one.resource}.${one.group}` === resource)?.table;
    for (const parts of [{}, { spec: {}, status: {} }])
      assert.deepEqual(table?.cells({ metadata: {}, ...parts }, agesAt(0)), want);
  });
}
