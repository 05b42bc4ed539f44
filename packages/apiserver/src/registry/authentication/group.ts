import { inGroup } from "../definition.ts";
import type { ResourceDefinition } from "../generic/resource.ts";
import { reviewToken } from "./tokenreviews/review.ts";

export function authenticationResources(): ResourceDefinition[] {
  return inGroup("authentication.k8s.io", [
    {
      resource: "tokenreviews",
      kind: "TokenReview",
      namespaced: false,
      verbs: ["create"],
      versions: ["v1"],
      subresources: {
        "": { kind: "TokenReview", verbs: ["create"], handler: { type: "object", create: reviewToken } },
      },
    },
  ]);
}
