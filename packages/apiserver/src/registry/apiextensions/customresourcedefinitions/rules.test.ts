import { testKindRules } from "../../../testing/kind-rules.ts";

const rules = [{ rule: "self > 1" }];
const schema = { type: "object", properties: { a: { type: "integer", "x-kubernetes-validations": rules } }, allOf: [] };
const valid = {
  metadata: { name: "crons.example.com" },
  spec: {
    group: "example.com",
    scope: "Namespaced",
    names: { plural: "crons", kind: "Cron" },
    versions: [{ name: "v1", served: true, storage: true, schema: { openAPIV3Schema: schema } }],
  },
};

testKindRules("customresourcedefinitions.apiextensions.k8s.io", valid, [
  { name: "a definition", change: {}, want: [] },
  {
    name: "a definition without a conversion, which is not defaulted",
    undefaulted: true,
    change: { "spec.names": { plural: "crons", singular: "cron", kind: "Cron", listKind: "CronList" } },
    want: [],
  },
  {
    name: "a version more, which becomes the one of storage",
    before: {},
    change: {
      "spec.versions[0].storage": false,
      "spec.versions[1]": { name: "v2", served: true, storage: true, schema: { openAPIV3Schema: { type: "object" } } },
    },
    want: [],
  },
  {
    name: "to take away a version that was stored",
    before: {},
    change: { "spec.versions[0].name": "v2" },
    want: ['status.storedVersions[0]: Invalid value: "v1": must appear in spec.versions'],
  },
  {
    name: "a status with names that are no labels",
    before: {},
    status: true,
    change: { "status.acceptedNames": { plural: "crons", kind: "Cron", listKind: "Cron" } },
    want: ['status.acceptedNames.listKind: Invalid value: "Cron": kind and listKind may not be the same'],
  },
  {
    name: "rules in another language in operators, which are not dropped",
    change: { "spec.versions[0].schema.openAPIV3Schema.allOf": [{ "x-kubernetes-validations": rules }] },
    want: ["spec.validation.openAPIV3Schema.allOf[0].x-kubernetes-validations: Forbidden: must be empty to be structural"],
  },
]);
