import assert from "node:assert/strict";
import { test } from "node:test";
import { atOnce, type Steps } from "../../../process/event-loop/steps.ts";
import { cpuMsOf } from "../../../testing/cpu-time.ts";
import { StatusError } from "../../errors/status-error.ts";
import { formatTime } from "../../meta/time.ts";
import type { Unstructured } from "../../meta/types.ts";
import type { TypeDescriptor } from "../../schema/descriptor.ts";
import { scheme } from "../../schema/scheme.ts";
import { applyTypeOf } from "./apply-type.ts";
import { describeObject } from "./field-manager.ts";
import { emptySet, paths } from "./field-set.ts";
import { capUpdateManagers, decodeManaged, maxUpdateManagers } from "./managed-fields.ts";
import { reconcileInSteps } from "./reconcile.ts";
import { deployment, type Loose, main, Stored, status, template } from "./testing.ts";
import { fieldSetOf } from "./typed-value.ts";

const pod = applyTypeOf(scheme.kind({ group: "", version: "v1", kind: "Pod" }) as TypeDescriptor); // cast: a known kind

test("a create gives its manager the fields it set, without those hidden by Go's zero values", () => {
  const stored = new Stored().update("kubectl-create", (next: Loose) => {
    next.metadata.labels = { app: "web" };
    next.spec = { replicas: 1, selector: { matchLabels: { app: "web" } }, template: template("web:1"), strategy: {} };
  });
  assert.deepEqual(stored.entries(), {
    "kubectl-create Update": [
      ".metadata.labels",
      ".metadata.labels.app",
      ".spec.replicas",
      ".spec.selector",
      ".spec.template.metadata.labels",
      ".spec.template.metadata.labels.app",
      '.spec.template.spec.containers[name="web"]',
      '.spec.template.spec.containers[name="web"].image',
      '.spec.template.spec.containers[name="web"].name',
      '.spec.template.spec.containers[name="web"].resources',
    ],
  });
  assert.deepEqual(
    { ...stored.entry("kubectl-create Update"), fieldsV1: undefined },
    {
      manager: "kubectl-create",
      operation: "Update",
      apiVersion: "apps/v1",
      time: formatTime(1_000_000_001_000),
      fieldsType: "FieldsV1",
      fieldsV1: undefined,
    },
  );
});

test("fields that the server sets belong to no manager, and a manager without a name is unknown", () => {
  const stored = new Stored()
    .update("a", (next: Loose) => {
      next.spec = { replicas: 1 };
      Object.assign(next.metadata, { uid: "u", resourceVersion: "1", generation: 1, creationTimestamp: "2022-01-01T00:00:00Z" });
      Object.assign(next.metadata, { selfLink: "/x", clusterName: "c" });
    })
    .update("", (next: Loose) => {
      Object.assign(next.metadata, { uid: "v", resourceVersion: "2", generation: 2, selfLink: "/y", clusterName: "d" });
      next.spec.paused = true;
    });
  assert.deepEqual(stored.entries(), { "a Update": [".spec.replicas"], "unknown Update": [".spec.paused"] });
  const created = new Stored().update("", (next: Loose) => {
    next.spec = { replicas: 1 };
  });
  assert.deepEqual(created.entries(), { "unknown Update": [".spec.replicas"] });
});

test("an update takes fields from their owner only when it changes them", () => {
  const stored = new Stored()
    .update("a", (next: Loose) => {
      next.spec = { replicas: 1, paused: true, minReadySeconds: 5 };
    })
    .update("b", (next: Loose) => void Object.assign(next.spec, { replicas: 2, minReadySeconds: 5 }));
  assert.deepEqual(stored.entries(), { "a Update": [".spec.minReadySeconds", ".spec.paused"], "b Update": [".spec.replicas"] });
});

test("removed fields have no owner, and a manager without fields has no entry", () => {
  const stored = new Stored()
    .update("a", (next: Loose) => {
      next.spec = { replicas: 1, paused: true };
    })
    .update("b", (next: Loose) => {
      next.spec.minReadySeconds = 1;
    })
    .update("a", (next: Loose) => {
      delete next.spec.minReadySeconds;
    });
  assert.deepEqual(Object.keys(stored.entries()), ["a Update"]);
});

test("an update that changes nothing leaves entries and times as they were", () => {
  const stored = new Stored().update("a", (next: Loose) => {
    next.spec = { replicas: 1 };
  });
  const before = JSON.stringify(stored.object);
  assert.equal(JSON.stringify(stored.update("b", () => {}).object), before);
});

test("the time is that of the last change to the set, not of a changed value", () => {
  const stored = new Stored().update("a", (next: Loose) => {
    next.spec = { replicas: 1 };
  });
  const { time } = stored.entry("a Update");
  assert.equal(
    stored
      .update("a", (next: Loose) => {
        next.spec.replicas = 2;
      })
      .entry("a Update").time,
    time,
  );
  assert.notEqual(
    stored
      .update("a", (next: Loose) => {
        next.spec.paused = true;
      })
      .entry("a Update").time,
    time,
  );
});

test("status has separate entries, and neither endpoint owns what it ignores", () => {
  const stored = new Stored()
    .update("a", (next: Loose) => void Object.assign(next, { spec: { replicas: 1 }, status: { replicas: 7 } }))
    .update("a", (next: Loose) => void Object.assign(next, { spec: { replicas: 9 }, status: { replicas: 1 } }), status);
  assert.deepEqual(stored.entries(), { "a Update": [".spec.replicas"], "a Update status": [".status.replicas"] });
});

test("a subresource never takes entries from its client", () => {
  const stored = new Stored()
    .update("a", (next: Loose) => {
      next.spec = { replicas: 1 };
    })
    .update(
      "b",
      (next: Loose) => {
        next.metadata.managedFields = [];
        next.status = { replicas: 1 };
      },
      status,
    );
  assert.deepEqual(Object.keys(stored.entries()), ["a Update", "b Update status"]);
});

for (const { name, value } of [
  { name: "an empty list", value: [] },
  { name: "one empty entry", value: [{}] },
]) {
  test(`${name} resets the entries until the next apply`, () => {
    const stored = new Stored()
      .update("a", (next: Loose) => {
        next.spec = { replicas: 1 };
      })
      .update("a", (next: Loose) => {
        next.metadata.managedFields = value;
      });
    assert.equal(stored.live.metadata.managedFields, undefined);
    assert.equal(
      stored.update("b", (next: Loose) => {
        next.spec.replicas = 2;
      }).live.metadata.managedFields,
      undefined,
    );
    stored.apply("c", { metadata: { labels: { a: "b" } } });
    assert.deepEqual(stored.entries(), {
      "before-first-apply Update": [".spec.replicas"],
      "c Apply": [".metadata.labels.a"],
    });
  });
}

test("entries that cannot be read do not replace those of the object", () => {
  for (const broken of [
    { operation: "Update" },
    { operation: "Update", apiVersion: "apps/v1", fieldsType: "FieldsV1", fieldsV1: { foo: {} } },
  ]) {
    const stored = new Stored()
      .update("a", (next: Loose) => {
        next.spec = { replicas: 1 };
      })
      .update("b", (next: Loose) => {
        next.metadata.managedFields = [broken];
        next.spec.paused = true;
      });
    assert.deepEqual(stored.entries(), { "a Update": [".spec.replicas"], "b Update": [".spec.paused"] });
  }
});

test("ten thousand update entries are merged quickly", () => {
  const count = 10_000;
  const managed = decodeManaged(
    Array.from({ length: count }, (_, i) => ({
      manager: `m${i}`,
      operation: "Update" as const,
      apiVersion: "v1",
      fieldsType: "FieldsV1",
      fieldsV1: { "f:data": { [`f:${i}`]: {} } },
    })),
  );
  const tookMs = cpuMsOf(() => capUpdateManagers(managed));
  assert.equal(managed.size, maxUpdateManagers);
  const collected = [...managed.values()].find(({ manager }) => manager === "ancient-changes");
  assert.equal(paths(collected?.set ?? emptySet).length, count - maxUpdateManagers + 1);
  assert.ok(tookMs < 500, `${tookMs} ms`); // sequential unions take 2.5 s
});

test("the owned empty resources of 4,000 containers are compared with the object in time that is linear", () => {
  const containers = Array.from({ length: 4_000 }, (_, i) => ({ name: `c${i}`, image: "x", resources: {} }));
  const object = { spec: { containers } };
  const owned = fieldSetOf(pod, object);
  let reconciled = emptySet;
  const tookMs = cpuMsOf(() => {
    reconciled = atOnce(reconcileInSteps(owned, pod, object));
  });
  assert.deepEqual(paths(reconciled).length, paths(owned).length);
  assert.ok(tookMs < 1_000, `${tookMs} ms`); // a search from the root for each takes 3.7 s
});

/** @returns share of the longest step in the total time */
function longestPart(steps: Steps<unknown>): number {
  let [longest, whole] = [0, 0];
  for (let done = false; !done; ) {
    const tookMs = cpuMsOf(() => {
      done = steps.next().done === true;
    });
    longest = Math.max(longest, tookMs);
    whole += tookMs;
  }
  return longest / whole;
}

test("fifty thousand items are processed in steps", () => {
  const items = (prefix: string) => Array.from({ length: 50_000 }, (_, i) => `example.com/${prefix}${i}`);
  const withItems = (prefix: string) => ({ metadata: { name: "web", finalizers: items(prefix) } });
  const stored = new Stored().apply("a", withItems("a"));
  const next = deployment({});
  next.metadata.finalizers = items("b");
  const config = { apiVersion: "apps/v1", kind: "Deployment", ...withItems("c") } as Unstructured;
  assert.ok(longestPart(main.update(stored.object, next, "b", 0)) < 0.8);
  assert.ok(longestPart(main.apply(stored.object, config, "a", true, 0)) < 0.5);
});

test("a conflict about thousands of fields names the first thousand", () => {
  const labels = (value: string) => Object.fromEntries(Array.from({ length: 1003 }, (_, i) => [`l${i}`, value]));
  const stored = new Stored().apply("a", { metadata: { labels: labels("1") } });
  assert.throws(
    () => stored.apply("b", { metadata: { labels: labels("2") } }),
    (err) => {
      assert.ok(err instanceof StatusError);
      assert.match(err.message, /^Apply failed with 1003 conflicts: conflicts with "a":\n- .*\nand 3 more$/s);
      assert.equal(err.status.details?.causes?.length, 1000);
      return true;
    },
  );
});

test("the oldest update entries are merged when there are too many", () => {
  const stored = new Stored();
  for (let i = 0; i < maxUpdateManagers + 3; i++) {
    stored.update(`m${i}`, (next: Loose) => {
      next.metadata.labels = { ...next.metadata.labels, [`l${i}`]: "" };
    });
  }
  const names = Object.keys(stored.entries());
  assert.equal(names.length, maxUpdateManagers);
  assert.equal(names[0], "ancient-changes Update");
  assert.deepEqual(
    stored.entries()["ancient-changes Update"]?.filter((path) => path !== ".metadata.labels"),
    [0, 1, 2, 3].map((i) => `.metadata.labels.l${i}`),
  );
  assert.equal(stored.entry("ancient-changes Update").time, formatTime(1_000_000_004_000));
});

for (const { object, want } of [
  {
    object: { apiVersion: "apps/v1", kind: "Deployment", metadata: { namespace: "a", name: "web" } },
    want: "a/web; apps/v1, Kind=Deployment",
  },
  { object: { apiVersion: "v1", kind: "Node", metadata: { name: "n" } }, want: "/n; /v1, Kind=Node" },
  { object: {}, want: "/; /, Kind=" },
]) {
  test(`an object in an error: ${want}`, () => {
    assert.equal(describeObject(object), want);
  });
}
