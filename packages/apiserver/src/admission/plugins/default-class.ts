import type { GroupResource, ResourceRef } from "@coxswain/apimachinery/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/meta/types";
import type { PluginContext } from "../catalogue.ts";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";

export interface DefaultClassOptions {
  readonly name: string;
  /** What has a class. */
  readonly of: GroupResource;
  readonly classes: ResourceRef;
  /** Of `spec`: the name of the class. */
  readonly field: string;
  /** Names the class too: who has it has chosen. */
  readonly annotation: string;
  /** Annotations that make a class the default one. */
  readonly defaultAnnotations: readonly string[];
  /** @returns the text when there is more than one default */
  tooMany(count: number): string;
}

/** Objects that name no class get the default one when they are made. */
export function newDefaultClass(ctx: PluginContext, options: DefaultClassOptions): AdmissionPlugin {
  const { name, of, classes, field, annotation, defaultAnnotations, tooMany } = options;
  const informer = ctx.informers.for<KubeObject>(classes);
  return {
    name,
    handles: (operation) => operation === "CREATE",
    ready: () => informer.synced,
    async admit(attributes) {
      const { resource, subresource } = attributes;
      if (resource.group !== of.group || resource.resource !== of.resource || subresource !== "") return;
      const object = attributes.object as KubeObject & { spec?: Record<string, unknown> };
      const { annotations } = object.metadata;
      if (object.spec?.[field] !== undefined) return;
      if (annotations !== undefined && Object.hasOwn(annotations, annotation)) return;
      const defaults = informer.lister
        .list()
        .filter(({ metadata }) => defaultAnnotations.some((mark) => metadata.annotations?.[mark] === "true"));
      if (defaults.length > 1) throw refuse(attributes, `Internal error occurred: ${tooMany(defaults.length)}`);
      const found = defaults[0]?.metadata.name;
      if (found !== undefined) object.spec = { ...object.spec, [field]: found };
    },
  };
}
