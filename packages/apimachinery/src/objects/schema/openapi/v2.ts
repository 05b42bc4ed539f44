/**
 * The OpenAPI v2 document of the served resources. kubectl uses it for validation and `explain`, and clients read merge
 * keys and supported operations from it.
 * Source: k8s.io/kube-openapi pkg/builder; k8s.io/kubernetes api/openapi-spec/swagger.json (names)
 */
import type { Steps } from "../../../process/event-loop/steps.ts";
import { kubernetesRelease } from "../../../process/release.ts";
import { Definitions, sortedByName } from "./definitions.ts";
import type { OpenApiDocument, OpenApiOptions, OpenApiResource, PathItem, SecurityScheme } from "./document.ts";
import { rootsOf } from "./roots.ts";

export const info = { title: "Kubernetes", version: kubernetesRelease.gitVersion };

export const bearerToken: SecurityScheme = {
  description: "Bearer Token authentication",
  type: "apiKey",
  name: "authorization",
  in: "header",
};

/** Creates the document, yielding between steps of a few milliseconds. */
export function* openApiV2Steps(resources: readonly OpenApiResource[], options: OpenApiOptions = {}): Steps<OpenApiDocument> {
  const definitions = new Definitions({ ...options, prefix: "#/definitions/" });
  const paths: Record<string, PathItem> = {};
  for (const part of [...rootsOf(resources).values()].flat()) {
    Object.assign(paths, part(definitions));
    yield;
  }
  return {
    swagger: "2.0",
    info,
    paths: sortedByName(paths),
    definitions: definitions.all(),
    securityDefinitions: { BearerToken: bearerToken },
    security: [{ BearerToken: [] }],
  };
}
