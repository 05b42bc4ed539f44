import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "../../../testing/fast-check.ts";
import { StatusError } from "../../errors/status-error.ts";
import { lastAppliedAnnotation } from "./last-applied.ts";
import { type Loose, managerOf, nameOf, pathsOf, Stored, status, template } from "./testing.ts";

test("an apply creates an object and owns its fields, except for name and namespace", () => {
  const stored = new Stored().apply("a", {
    metadata: { name: "web", namespace: "default", labels: { app: "web" } },
    spec: { replicas: 1, template: template("web:1", { ports: [{ containerPort: 80 }] }) },
  });
  assert.deepEqual(stored.entries(), {
    "a Apply": [
      ".metadata.labels.app",
      ".spec.replicas",
      ".spec.template.metadata.labels.app",
      '.spec.template.spec.containers[name="web"]',
      '.spec.template.spec.containers[name="web"].image',
      '.spec.template.spec.containers[name="web"].name',
      '.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"]',
      '.spec.template.spec.containers[name="web"].ports[containerPort=80,protocol="TCP"].containerPort',
    ],
  });
});

test("applying the same again changes nothing, not even times", () => {
  const config = { metadata: { name: "web", labels: { app: "web" } }, spec: { replicas: 1, template: template("web:1") } };
  const stored = new Stored().apply("a", config);
  const before = JSON.stringify(stored.object);
  assert.equal(JSON.stringify(stored.apply("a", config).object), before);
});

test("two managers share a field while they agree on its value", () => {
  const stored = new Stored().apply("a", { spec: { replicas: 1 } }).apply("b", { spec: { replicas: 1 } });
  assert.deepEqual(stored.entries(), { "a Apply": [".spec.replicas"], "b Apply": [".spec.replicas"] });
  // The field stays when one of its two owners stops applying it.
  stored.apply("b", { spec: { paused: true } });
  assert.equal(stored.live["spec"] && (stored.live["spec"] as Loose).replicas, 1);
  assert.deepEqual(stored.entries(), { "a Apply": [".spec.replicas"], "b Apply": [".spec.paused"] });
});

test("equal quantities do not conflict, and a zero value equals an absent field", () => {
  const limits = (cpu: unknown) => ({ spec: { paused: false, template: template("web:1", { resources: { limits: { cpu } } }) } });
  const stored = new Stored().apply("a", limits("1000m"));
  const before = JSON.stringify(stored.object);
  assert.equal(JSON.stringify(stored.apply("a", limits(1)).object), before);
  stored.apply("b", limits("1"));
  assert.throws(() => stored.apply("b", limits("1001m")), /1 conflict: conflict with "a": .*limits\.cpu$/);
});

test("a zero value that takes the place of another one is a conflict", () => {
  const stored = new Stored().apply("a", { spec: { paused: true, minReadySeconds: 3 } });
  assert.throws(
    () => stored.apply("b", { spec: { paused: false, minReadySeconds: 0 } }),
    /^StatusError: Apply failed with 2 conflicts/,
  );
});

test("another value is a conflict with one cause for each field, and force takes the fields", () => {
  const stored = new Stored()
    .update("kubectl-client-side-apply", (next: Loose) => {
      next.spec = { replicas: 1, paused: true };
    })
    .update(
      "kubelet",
      (next: Loose) => {
        next.status = { replicas: 1 };
      },
      status,
    )
    .apply("first", { spec: { minReadySeconds: 1 } });
  assert.throws(
    () => stored.apply("b", { spec: { replicas: 2 } }),
    (err) => {
      assert.ok(err instanceof StatusError);
      assert.deepEqual(err.status, {
        kind: "Status",
        apiVersion: "v1",
        metadata: {},
        status: "Failure",
        message: 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas',
        reason: "Conflict",
        details: {
          causes: [
            {
              reason: "FieldManagerConflict",
              message: 'conflict with "kubectl-client-side-apply" using apps/v1',
              field: ".spec.replicas",
            },
          ],
        },
        code: 409,
      });
      return true;
    },
  );
  assert.throws(
    () =>
      stored.apply(
        "b",
        { spec: { replicas: 2, paused: false, minReadySeconds: 2 }, status: { replicas: 5 } },
        { through: managerOf("", []) },
      ),
    {
      message:
        'Apply failed with 4 conflicts: conflicts with "first":\n- .spec.minReadySeconds\n' +
        'conflicts with "kubectl-client-side-apply" using apps/v1:\n- .spec.paused\n- .spec.replicas\n' +
        'conflicts with "kubelet" with subresource "status" using apps/v1:\n- .status.replicas',
    },
  );
  stored.apply("b", { spec: { replicas: 2, minReadySeconds: 2 } }, { force: true });
  assert.deepEqual(stored.entries(), {
    "b Apply": [".spec.minReadySeconds", ".spec.replicas"],
    "kubectl-client-side-apply Update": [".spec.paused"],
    "kubelet Update status": [".status.replicas"],
  });
});

test("fields and list items that are no longer applied are removed, unless another manager owns them or a field in them", () => {
  const stored = new Stored()
    .apply("a", {
      metadata: { labels: { mine: "1", ours: "1" } },
      spec: {
        replicas: 3,
        template: {
          spec: {
            containers: [
              { name: "x", image: "1" },
              { name: "y", image: "1" },
            ],
          },
        },
      },
    })
    .apply("b", { metadata: { labels: { ours: "1" } }, spec: { template: { spec: { containers: [{ name: "y" }] } } } })
    .update("c", (next: Loose) => {
      next.spec.template.spec.containers[0].imagePullPolicy = "Always";
    })
    .apply("a", { spec: { template: { spec: {} } } });
  const object: Loose = stored.live;
  assert.deepEqual(object.metadata.labels, { ours: "1" });
  assert.equal(object.spec.replicas, undefined);
  assert.deepEqual(object.spec.template.spec.containers, [{ name: "y" }]);
  // Only manager a owned the item x itself, so it is removed with the fields that c set in it.
  assert.deepEqual(Object.keys(stored.entries()).sort(), ["a Apply", "b Apply"]);
});

test("a field that another manager changed is not removed with the configuration that set it first", () => {
  const stored = new Stored()
    .apply("a", { spec: { replicas: 1, paused: true } })
    .update("scaler", (next: Loose) => {
      next.spec.replicas = 5;
    })
    .apply("a", { spec: { paused: true } });
  assert.equal((stored.live as Loose).spec.replicas, 5);
  assert.deepEqual(stored.entries(), { "a Apply": [".spec.paused"], "scaler Update": [".spec.replicas"] });
});

test("ignored fields of an apply are neither owned nor in conflict", () => {
  const stored = new Stored().update(
    "k",
    (next: Loose) => {
      next.status = { replicas: 1 };
    },
    status,
  );
  stored.update(
    "k",
    (next: Loose) => {
      next.status = { replicas: 2 };
    },
    status,
  );
  stored.apply("a", { spec: { replicas: 1 }, status: { replicas: 9 } });
  assert.deepEqual(stored.entries()["a Apply"], [".spec.replicas"]);
});

test("entries of other versions are updated by conversion, those of unknown versions are removed", () => {
  const beta = managerOf("", ["status"], "apps/v1beta1");
  const stored = new Stored()
    .update("a", (next: Loose) => {
      next.spec = { replicas: 1, paused: true };
    })
    .update(
      "b",
      (next: Loose) => {
        next.spec.minReadySeconds = 1;
      },
      beta,
    );
  assert.equal(stored.entry("b Update").apiVersion, "apps/v1beta1");
  stored.update("c", (next: Loose) => void Object.assign(next.spec, { minReadySeconds: 2 }));
  assert.deepEqual(Object.keys(stored.entries()), ["a Update", "c Update"]);
  const only = managerOf("", ["status"], "apps/v1beta2", ["apps/v1beta2"]);
  stored.update(
    "d",
    (next: Loose) => {
      next.spec.replicas = 3;
    },
    only,
  );
  assert.deepEqual(stored.entries(), { "d Update": [".spec.replicas"] });
});

test("an applier that changes versions has one entry", () => {
  const beta = managerOf("", ["status"], "apps/v1beta1");
  const stored = new Stored().apply("a", { apiVersion: "apps/v1beta1", spec: { replicas: 1, paused: true } }, { through: beta });
  stored.apply("a", { spec: { paused: true } });
  assert.deepEqual(stored.entries(), { "a Apply": [".spec.paused"] });
  assert.equal(stored.entry("a Apply").apiVersion, "apps/v1");
  assert.equal((stored.live as Loose).spec.replicas, undefined);
});

for (const { name, config, code, want } of [
  {
    name: "another version",
    config: { apiVersion: "apps/v1beta1" },
    code: 400,
    want: "Incorrect version specified in apply patch. Specified patch version: apps/v1beta1, expected: apps/v1",
  },
  {
    name: "entries of its own",
    config: { metadata: { managedFields: [] } },
    code: 400,
    want: "metadata.managedFields must be nil",
  },
  {
    name: "unknown fields",
    config: { spec: { foo: 1 } },
    code: 500,
    want: "failed to create typed patch object (/; apps/v1, Kind=Deployment): .spec.foo: field not declared in schema",
  },
]) {
  test(`a configuration is refused: ${name}`, () => {
    assert.throws(
      () => new Stored().apply("a", config),
      (err) => {
        assert.ok(err instanceof StatusError);
        assert.deepEqual([err.code, err.message], [code, want]);
        return true;
      },
    );
  });
}

test("kubectl's server-side apply takes over from its client-side apply without conflict, and keeps the annotation", () => {
  const config = { metadata: { name: "web", annotations: {} }, spec: { replicas: 1, paused: true } };
  const lastApplied = `${JSON.stringify({ apiVersion: "apps/v1", kind: "Deployment", ...config })}\n`;
  const stored = new Stored().update("kubectl-client-side-apply", (next: Loose) => {
    next.metadata.annotations = { [lastAppliedAnnotation]: lastApplied };
    next.spec = { replicas: 1, paused: true };
  });
  assert.throws(() => stored.apply("somebody", { spec: { replicas: 2 } }), /1 conflict/);
  stored.apply("kubectl", { spec: { replicas: 2 } });
  assert.deepEqual(stored.entries()["kubectl Apply"], [".spec.replicas"]);
  assert.deepEqual(stored.live.metadata.annotations, {
    [lastAppliedAnnotation]: '{"apiVersion":"apps/v1","kind":"Deployment","spec":{"replicas":2}}\n',
  });
});

test("fields changed since the client-side apply still conflict", () => {
  const stored = new Stored()
    .update("kubectl-client-side-apply", (next: Loose) => {
      const applied = { apiVersion: "apps/v1", kind: "Deployment", spec: { replicas: 1 } };
      next.metadata.annotations = { [lastAppliedAnnotation]: JSON.stringify(applied) };
      next.spec = { replicas: 1 };
    })
    .update("scaler", (next: Loose) => {
      next.spec.replicas = 4;
    });
  assert.throws(() => stored.apply("kubectl", { spec: { replicas: 1 } }), {
    message: 'Apply failed with 1 conflict: conflict with "scaler" using apps/v1: .spec.replicas',
  });
});

test("fields owned under an earlier schema are converted to the current one", () => {
  const stored = new Stored().update("a", (next: Loose) => {
    next.spec = { selector: { matchLabels: { app: "web" } }, replicas: 1 };
    next.metadata.labels = { a: "1", b: "2" };
  });
  // Entry of a schema where the selector was granular and the labels atomic.
  const entry = stored.entry("a Update");
  entry.fieldsV1 = {
    "f:metadata": { "f:labels": {} },
    "f:spec": { "f:selector": { "f:matchLabels": { ".": {}, "f:app": {} } } },
  };
  stored.update("b", (next: Loose) => {
    next.metadata.labels = { a: "1", b: "3" };
  });
  assert.deepEqual(stored.entries(), {
    "a Update": [".metadata.labels", ".metadata.labels.a", ".spec.selector"],
    "b Update": [".metadata.labels.b"],
  });
});

test("the owner of a map conflicts over fields that other managers have set in it", () => {
  const stored = new Stored()
    .update("a", (next: Loose) => {
      next.metadata.labels = { x: "1" };
    })
    .update("b", (next: Loose) => {
      next.metadata.labels = { x: "2" };
    });
  assert.deepEqual(stored.entries(), { "a Update": [".metadata.labels"], "b Update": [".metadata.labels.x"] });
  assert.throws(() => stored.apply("c", { metadata: { labels: { x: "3" } } }), {
    message:
      'Apply failed with 2 conflicts: conflicts with "a" using apps/v1:\n- .metadata.labels.x\nconflicts with "b" using apps/v1:\n- .metadata.labels.x',
  });
});

test("fields that were removed from the schema stay owned", () => {
  const stored = new Stored().update("a", (next: Loose) => {
    next.spec = { replicas: 1 };
  });
  stored.entry("a Update").fieldsV1 = { "f:spec": { "f:gone": { "f:x": {} }, "f:replicas": {} } };
  stored.update("b", (next: Loose) => {
    next.spec.replicas = 2;
  });
  assert.deepEqual(stored.entries(), { "a Update": [".spec.gone.x"], "b Update": [".spec.replicas"] });
});

const spec = fc.record(
  {
    replicas: fc.integer({ min: 0, max: 2 }),
    paused: fc.boolean(),
    template: fc.record({
      spec: fc.record({
        containers: fc.uniqueArray(
          fc.record({ name: fc.constantFrom("a", "b"), image: fc.constantFrom("1", "2") }, { requiredKeys: ["name"] }),
          { selector: (c) => c.name },
        ),
      }),
    }),
  },
  { requiredKeys: [] },
);
const labels = fc.dictionary(fc.constantFrom("x", "y", "__proto__"), fc.constantFrom("1", "2"));
const config = fc.record({ metadata: fc.record({ labels }, { requiredKeys: [] }), spec }, { requiredKeys: [] });
const step = fc.record({ manager: fc.constantFrom("a", "b", "c"), apply: fc.boolean(), config });

test("after random applies and updates, each manager owns what it applied last and that exists, and repeating an apply changes nothing", () => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 6 }), (steps) => {
      const stored = new Stored().update("base", (next: Loose) => {
        next.spec = { replicas: 1 };
      });
      for (const { manager, apply, config } of JSON.parse(JSON.stringify(steps)) as typeof steps) {
        if (!apply) {
          stored.update(manager, (next: Loose) => {
            if (config.spec) Object.assign(next.spec, config.spec);
            if (config.metadata?.labels) next.metadata.labels = config.metadata.labels;
          });
        } else {
          // Applied twice: the second time, owners of containers with foreign contents become owners of these.
          stored.apply(manager, config, { force: true }).apply(manager, config, { force: true });
          const before = JSON.stringify(stored.object);
          assert.equal(JSON.stringify(stored.apply(manager, config).object), before);
        }
        const ids = (stored.live.metadata.managedFields ?? []).map(nameOf);
        assert.equal(new Set(ids).size, ids.length);
        for (const entry of stored.live.metadata.managedFields ?? []) assert.ok(pathsOf(entry).length > 0);
      }
    }),
    { numRuns: 200 },
  );
});
