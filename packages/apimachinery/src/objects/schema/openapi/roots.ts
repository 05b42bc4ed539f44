/**
 * All paths of a server by root: `api/v1`, `apis/apps`, `version`. OpenAPI v2 has all of them in one document, v3 one
 * document for each root.
 * Source: k8s.io/apiserver pkg/endpoints/discovery, pkg/server/routes; k8s.io/kubernetes pkg/routes
 */
import { groupVersionPath } from "../../meta/group-version.ts";
import { scheme } from "../scheme.ts";
import type { Definitions } from "./definitions.ts";
import type { OpenApiResource, Operation, PathItem, Schema } from "./document.ts";
import { capital, groupTag, groupVersionWords, tagOf } from "./operation-names.ts";
import { pathItem, pathParameter } from "./parameters.ts";
import { objectTypes, resourcePaths } from "./resource-paths.ts";

/** Creates some of a root's paths; takes a few milliseconds at most, so that callers can yield in between. */
type RootPart = (definitions: Definitions) => Record<string, PathItem>;

/** @returns the parts of each root, by root */
export function rootsOf(resources: readonly OpenApiResource[]): Map<string, readonly RootPart[]> {
  const roots = new Map<string, readonly RootPart[]>(otherRoots.map(([root, part]) => [root, [part]]));
  const byVersion = Map.groupBy(resources, (resource) => groupVersionPath(resource).slice(1));
  for (const [root, those] of byVersion) {
    const { group, version } = those[0]!;
    if (group === "") roots.set("api", [coreVersions]);
    else {
      roots.set("apis", [groups]);
      roots.set(`apis/${group}`, [groupOf(group)]);
    }
    roots.set(root, [
      versionOf(group, version, root),
      ...those.map(
        (resource): RootPart =>
          (definitions) =>
            resourcePaths(resource, definitions),
      ),
    ]);
  }
  return roots;
}

const coreVersions: RootPart = (definitions) =>
  reading("/api/", {
    description: "get available API versions",
    operationId: "getCoreAPIVersions",
    tags: ["core"],
    answer: definitions.meta("APIVersions"),
  });

const groups: RootPart = (definitions) =>
  reading("/apis/", {
    description: "get available API versions",
    operationId: "getAPIVersions",
    tags: ["apis"],
    answer: definitions.meta("APIGroupList"),
  });

const groupOf =
  (group: string): RootPart =>
  (definitions) =>
    reading(`/apis/${group}/`, {
      description: "get information of a group",
      operationId: `get${capital(groupTag(group))}APIGroup`,
      tags: [groupTag(group)],
      answer: definitions.meta("APIGroup"),
    });

const versionOf =
  (group: string, version: string, root: string): RootPart =>
  (definitions) =>
    reading(`/${root}/`, {
      description: "get available resources",
      operationId: `get${groupVersionWords({ group, version })}APIResources`,
      tags: [tagOf({ group, version })],
      answer: definitions.meta("APIResourceList"),
    });

const otherRoots: readonly [string, RootPart][] = [
  [
    ".well-known/openid-configuration",
    () =>
      reading("/.well-known/openid-configuration/", {
        description: "get the OpenID configuration of the issuer of service account tokens",
        operationId: "getServiceAccountIssuerOpenIDConfiguration",
        tags: ["WellKnown"],
        consumes: undefined,
        produces: ["application/json"],
        answer: { type: "string" },
      }),
  ],
  [
    "logs",
    () => ({
      ...reading("/logs/", { operationId: "logFileListHandler", tags: ["logs"], consumes: undefined, produces: undefined }),
      ...reading("/logs/{logpath}", {
        operationId: "logFileHandler",
        tags: ["logs"],
        consumes: undefined,
        produces: undefined,
        parameters: [pathParameter("logpath", "The path of the log file.")],
      }),
    }),
  ],
  [
    "openid/v1/jwks",
    () =>
      reading("/openid/v1/jwks/", {
        description: "get the keys that verify service account tokens, as a JSON Web Key Set",
        operationId: "getServiceAccountIssuerOpenIDKeyset",
        tags: ["openid"],
        consumes: undefined,
        produces: ["application/jwk-set+json"],
        answer: { type: "string" },
      }),
  ],
  [
    "version",
    (definitions) => {
      const info = scheme.type("version/info.Info");
      return reading("/version/", {
        description: "get the code version",
        operationId: "getCodeVersion",
        tags: ["version"],
        consumes: ["application/json"],
        produces: ["application/json"],
        ...(info !== undefined && { answer: definitions.type(info) }),
      });
    },
  ],
];

type Reading = Partial<Operation> & { operationId: string; tags: string[]; answer?: Schema };

/** A path with only a GET operation. */
function reading(path: string, details: Reading): Record<string, PathItem> {
  const { answer, ...given } = { consumes: objectTypes, produces: objectTypes, ...details };
  const described = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  // Cast: the operation of roots has fewer fields than others.
  const get = {
    ...described,
    schemes: ["https"],
    responses: {
      ...(answer !== undefined && { "200": { description: "OK", schema: answer } }),
      "401": { description: "Unauthorized" },
    },
  } as unknown as Operation;
  return { [path]: pathItem({ get }) };
}
