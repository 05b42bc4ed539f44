import { type FieldError, invalidValue } from "@coxswain/apimachinery/objects/errors/field-error";
import { semanticEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { goStruct } from "@coxswain/apimachinery/objects/schema/go/go-print";

const groups = (...names: string[]): object[] => names.map((name) => ({ kind: "Group", group: { name } }));
const anything = {
  resourceRules: [{ verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true, namespaces: ["*"] }],
  nonResourceRules: [{ verbs: ["*"], nonResourceURLs: ["*"] }],
};

/** Fixed specs of the mandatory objects. Source: k8s.io/apiserver pkg/apis/flowcontrol/bootstrap/default.go */
const schemas: Readonly<Record<string, object>> = {
  exempt: {
    priorityLevelConfiguration: { name: "exempt" },
    matchingPrecedence: 1,
    rules: [{ subjects: groups("system:masters"), ...anything }],
  },
  "catch-all": {
    priorityLevelConfiguration: { name: "catch-all" },
    matchingPrecedence: 10_000,
    distinguisherMethod: { type: "ByUser" },
    rules: [{ subjects: groups("system:unauthenticated", "system:authenticated"), ...anything }],
  },
};

const levels: Readonly<Record<string, object>> = {
  exempt: { type: "Exempt" },
  "catch-all": { type: "Limited", limited: { assuredConcurrencyShares: 5, limitResponse: { type: "Reject" } } },
};

type WithSpec = KubeObject & { spec?: object };

/** Errors when a mandatory FlowSchema or PriorityLevelConfiguration differs from its fixed spec. */
export const mandatorySchemaProblems = (schema: WithSpec): FieldError[] => mandatoryProblems(schema, schemas, "FlowSchemaSpec");
export const mandatoryLevelProblems = (level: WithSpec): FieldError[] =>
  mandatoryProblems(level, levels, "PriorityLevelConfigurationSpec");

function mandatoryProblems(
  { metadata: { name = "" }, spec }: WithSpec,
  fixed: Readonly<Record<string, object>>,
  type: string,
): FieldError[] {
  if (!Object.hasOwn(fixed, name) || semanticEqual(spec ?? {}, fixed[name])) return [];
  return [
    invalidValue("spec", goStruct(`flowcontrol/v1beta2.${type}`, spec ?? {}), `spec of '${name}' must equal the fixed value`),
  ];
}
