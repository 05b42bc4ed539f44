/** CustomResourceDefinitions for tests. */
import { waitFor } from "@coxswain/apimachinery/testing/wait-for";
import type { TestServer } from "./start-test-server.ts";

export const definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

interface WidgetVersion {
  readonly name: string;
  readonly served?: boolean;
  readonly storage?: boolean;
  readonly schema?: object;
  readonly [field: string]: unknown;
}

/** A CRD for Widgets (`widgets.<group>`), schemaless unless a version has a schema. */
export function widgets(group: string, versions: readonly WidgetVersion[] = [{ name: "v1" }], spec: object = {}) {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `widgets.${group}` },
    spec: {
      group,
      names: {
        plural: "widgets",
        singular: "widget",
        kind: "Widget",
        listKind: "WidgetList",
        shortNames: ["wd"],
        categories: ["all"],
      },
      scope: "Namespaced",
      versions: versions.map(({ schema = anyShape, ...version }, i) => ({
        served: true,
        storage: i === 0,
        schema: { openAPIV3Schema: schema },
        ...version,
      })),
      ...spec,
    },
  };
}

const anyShape = { type: "object", "x-kubernetes-preserve-unknown-fields": true };

/** A schema for objects whose spec has these properties. */
export function specOf(properties: object, more: object = {}): object {
  return { type: "object", properties: { spec: { type: "object", properties, ...more } } };
}

/** Creates a CRD and waits until it is established. */
export async function define(server: TestServer, definition: ReturnType<typeof widgets>): Promise<void> {
  const { code, text } = await server.request("POST", definitionsPath, definition);
  if (code !== 201) throw new Error(`the definition is refused: ${text}`);
  await established(server, definition.metadata.name);
}

async function established(server: TestServer, name: string): Promise<void> {
  await waitFor(async () => (await conditionsOf(server, name))["Established"]?.status === "True");
}

/** Conditions of a CRD by type. */
export async function conditionsOf(server: TestServer, name: string): Promise<Record<string, Condition>> {
  const { body } = await server.request("GET", `${definitionsPath}/${name}`);
  const conditions = (body.status?.conditions ?? []) as Condition[];
  return Object.fromEntries(conditions.map((condition) => [condition.type, condition]));
}

interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly lastTransitionTime: string;
}

export function aWidget(group: string, name: string, fields: object = {}, version = "v1") {
  return { apiVersion: `${group}/${version}`, kind: "Widget", metadata: { name }, ...fields };
}
