import type { GroupResource, ResourceRef } from "@coxswain/apimachinery/objects/meta/group-version";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import { refuse } from "../errors.ts";
import type { AdmissionPlugin } from "../plugin.ts";
import type { PluginContext } from "../plugin-context.ts";

interface DefaultClassOptions {
  readonly name: string;
  /** Resource that references a class. */
  readonly of: GroupResource;
  readonly classes: ResourceRef;
  /** Field of `spec` that holds the class name. */
  readonly field: string;
  /** Legacy annotation that holds the class name; objects with it get no default. */
  readonly annotation: string;
  /** Annotations that mark a class as the default. */
  readonly defaultAnnotations: readonly string[];
  /** @returns the error text for more than one default class */
  tooMany(count: number): string;
}

/** An object whose spec names a class. */
interface Classified extends KubeObject {
  spec?: Record<string, unknown>;
}

/** On create, sets the default class on objects that name none. */
export function newDefaultClass(ctx: PluginContext, options: DefaultClassOptions): AdmissionPlugin<Classified> {
  const { name, of, classes, field, annotation, defaultAnnotations, tooMany } = options;
  const informer = ctx.informers.for<KubeObject>(classes);
  return {
    name,
    handles: (operation) => operation === "CREATE",
    resources: [of.group === "" ? of.resource : `${of.resource}.${of.group}`],
    ready: () => informer.synced,
    async admit(attributes) {
      const { resource, subresource } = attributes;
      if (resource.group !== of.group || resource.resource !== of.resource || subresource !== "") return;
      const object = attributes.object!;
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
