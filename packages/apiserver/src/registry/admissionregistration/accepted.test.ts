/** What webhook configurations may say: values next to those that webhook-rules.test.ts sees refused. */
import { type Accepted, testAccepted } from "../../testing/accepted.ts";

const hook = {
  name: "a.b.c",
  clientConfig: { url: "https://a/b" },
  sideEffects: "None",
  admissionReviewVersions: ["v1"],
  rules: [{ operations: ["CREATE"], apiGroups: [""], apiVersions: ["v1"], resources: ["pods"] }],
};
const other = { ...hook, name: "d.e.f" };
const service = (more: object) => ({ "webhooks[0].clientConfig": { service: { name: "s", namespace: "n", ...more } } });
const rule = (more: object) => ({ "webhooks[0].rules": [{ ...hook.rules[0], ...more }] });
const resources = (...list: string[]) => rule({ resources: list });
const ofRules = "webhooks[0].rules[0].resources";
const servicePath = "webhooks[0].clientConfig.service.path";

const rows = (resource: string): Accepted[] =>
  (
    [
      {
        name: "names of three segments",
        taken: [{ "webhooks[0].name": "a.b.c.d" }],
        refused: [
          [{ "webhooks[0].name": "a.b" }, 'webhooks[0].name: Invalid value: "a.b": should be a domain with at least three'],
        ],
      },
      {
        name: "each policy and each side effect that is none",
        taken: [
          ...["Fail", "Ignore"].map((policy) => ({ "webhooks[0].failurePolicy": policy })),
          ...["Exact", "Equivalent"].map((policy) => ({ "webhooks[0].matchPolicy": policy })),
          ...["None", "NoneOnDryRun"].map((effects) => ({ "webhooks[0].sideEffects": effects })),
          ...[1, 30].map((seconds) => ({ "webhooks[0].timeoutSeconds": seconds })),
          ...[["v1beta1"], ["v1", "v1beta1"], ["v9", "v1"]].map((versions) => ({
            "webhooks[0].admissionReviewVersions": versions,
          })),
        ],
        refused: [
          ...[0, 31].map(
            (seconds) =>
              [
                { "webhooks[0].timeoutSeconds": seconds },
                `webhooks[0].timeoutSeconds: Invalid value: ${seconds}: the timeout`,
              ] as const,
          ),
          [
            { "webhooks[0].sideEffects": "Some" },
            'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
          ],
        ],
      },
      {
        name: "services",
        taken: [
          service({}),
          ...[1, 65_535].map((port) => service({ port })),
          ...["", "/", "/a", "/a/b/", "/a.b/c"].map((path) => service({ path })),
        ],
        refused: [
          [service({ port: 65_536 }), "webhooks[0].clientConfig.service.port: Invalid value: 65536: port is not valid"],
          [service({ name: "" }), "webhooks[0].clientConfig.service.namespace: Required value: service namespace is required"],
          [service({ path: "/a//" }), `${servicePath}: Invalid value: "/a//": segment[1] may not be empty`],
          [service({ path: "//" }), `${servicePath}: Invalid value: "//": segment[0] may not be empty`],
        ],
      },
      {
        name: "rules for all and for some",
        taken: [
          rule({ operations: ["*"], apiGroups: ["*"], apiVersions: ["*"], resources: ["*/*"] }),
          rule({ operations: ["CONNECT", "CREATE", "DELETE", "UPDATE"], apiGroups: ["a", "b"], apiVersions: ["v1", "v2"] }),
          ...["*", "Cluster", "Namespaced"].map((scope) => rule({ scope })),
          resources("*"),
          resources("*", "pods/log", "*/status"),
          resources("a/b", "a/*"),
          resources("b/a", "*/a"),
          resources("a", "a/*", "b/c"),
        ],
        refused: [
          [resources("*/*", "a/b"), `${ofRules}: Invalid value: []string{"*/*", "a/b"}: if '*/*' is present`],
          [
            resources("*", "a"),
            `${ofRules}: Invalid value: []string{"*", "a"}: if '*' is present, must not specify other resources without`,
          ],
          [resources("*/a", "*/a"), `${ofRules}[1]: Invalid value: "*/a": if '*/a' is present, must not specify */a`],
          [resources("a/*", "a/*"), `${ofRules}[1]: Invalid value: "a/*": if 'a/*' is present, must not specify a/*`],
          [resources("pods", ""), `${ofRules}[1]: Required value`],
          [rule({ operations: [""] }), 'webhooks[0].rules[0].operations[0]: Unsupported value: ""'],
        ],
      },
      {
        name: "what one stored webhook of two has",
        before: { webhooks: [hook, { ...other, sideEffects: "Some", admissionReviewVersions: ["v9"] }] },
        taken: [
          { webhooks: [{ ...hook, sideEffects: "Unknown", admissionReviewVersions: ["v8"] }] },
          { webhooks: [hook, { ...other, sideEffects: "Some" }] },
        ],
        refused: [
          [{ webhooks: [hook, hook] }, 'webhooks[1].name: Duplicate value: "a.b.c"'],
          [
            { webhooks: [{ ...hook, sideEffects: undefined }] },
            "webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun, Some, Unknown",
          ],
          [{ webhooks: [{ ...hook, admissionReviewVersions: [] }] }, "webhooks[0].admissionReviewVersions: Required value"],
        ],
      },
      {
        name: "a name twice where one was there twice before",
        before: { webhooks: [hook, hook] },
        taken: [{ webhooks: [hook, hook, other, other] }],
        refused: [
          [
            { webhooks: [{ ...hook, admissionReviewVersions: ["v9"] }] },
            'webhooks[0].admissionReviewVersions: Invalid value: []string{"v9"}: must include',
          ],
        ],
      },
      {
        name: "no webhooks, and one where there was none",
        before: { webhooks: [] },
        taken: [{ webhooks: undefined }, { webhooks: [hook] }],
        refused: [
          [
            { webhooks: [{ ...hook, sideEffects: "Some" }] },
            'webhooks[0].sideEffects: Unsupported value: "Some": supported values: "None", "NoneOnDryRun"',
          ],
        ],
      },
    ] as Omit<Accepted, "resource">[]
  ).map((row) => ({ ...row, resource, valid: { webhooks: [hook] } }));

testAccepted([
  ...rows("mutatingwebhookconfigurations.admissionregistration.k8s.io"),
  ...rows("validatingwebhookconfigurations.admissionregistration.k8s.io"),
  {
    resource: "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    valid: { webhooks: [hook] },
    name: "each policy of calling again",
    taken: ["IfNeeded", "Never"].map((policy) => ({ "webhooks[0].reinvocationPolicy": policy })),
  },
]);
