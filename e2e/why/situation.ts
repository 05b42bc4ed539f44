/** A stuck situation as data: what makes it, the object of the question, and the phrase that its first line has to contain. */
export interface Situation {
  /** Also the name of its namespace, `why-<name>`, and of its objects without a namespace. */
  readonly name: string;
  /** Made in its namespace, in this order, unless they have no namespace. */
  readonly objects: readonly Manifest[];
  /** Labels of the namespace. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Steps one after the other when the objects exist. */
  readonly steps?: readonly Step[];
  /** Arguments of `kubectl why`. */
  readonly args: readonly string[];
  /** What the first line says. */
  readonly phrase: RegExp;
  /** Arguments of kubectl that undo what the deletion of the namespace does not. */
  readonly undo?: readonly (readonly string[])[];
  /** Part of the normal run: needs no kubelet and is there at once. */
  readonly quick?: true;
}

/** Arguments of kubectl, with `-n` added; an object to make; or a status to write. */
export type Step = readonly string[] | { readonly make: Manifest } | { readonly status: object; readonly of: string };

export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

const image = "busybox:1.35";

export function manifest(apiVersion: string, kind: string, name: string, rest: object = {}): Manifest {
  const { metadata, ...others } = rest as { metadata?: object };
  return { apiVersion, kind, metadata: { name, ...metadata }, ...others };
}

/** Ends at once on request. */
const sleeps = ["sh", "-c", "trap 'exit 0' TERM; sleep 1000000 & wait"];

const container = (more: object = {}): object => ({ name: "main", image, command: sleeps, ...more });

export const podSpec = (ofContainer: object = {}, more: object = {}): object => ({
  terminationGracePeriodSeconds: 1,
  containers: [container(ofContainer)],
  ...more,
});

export const pod = (name: string, ofContainer: object = {}, more: object = {}, metadata: object = {}): Manifest =>
  manifest("v1", "Pod", name, { metadata, spec: podSpec(ofContainer, more) });

const labels = { app: "web" };

/** With labels app=web. */
export const template = (ofContainer: object = {}, more: object = {}): object => ({
  metadata: { labels },
  spec: podSpec(ofContainer, more),
});

export const deployment = (ofContainer: object = {}, more: object = {}, spec: object = {}): Manifest =>
  manifest("apps/v1", "Deployment", "web", {
    spec: { selector: { matchLabels: labels }, template: template(ofContainer, more), ...spec },
  });

export const claim = (name: string, spec: object): Manifest =>
  manifest("v1", "PersistentVolumeClaim", name, {
    spec: { accessModes: ["ReadWriteOnce"], resources: { requests: { storage: "5Gi" } }, ...spec },
  });

/** A volume of 1Gi with its own class, of the situation's name. */
export const volume = (name: string): Manifest =>
  manifest("v1", "PersistentVolume", name, {
    spec: { capacity: { storage: "1Gi" }, accessModes: ["ReadWriteOnce"], storageClassName: name, hostPath: { path: "/tmp" } },
  });

export const volumeOf = (claimName: string): object => ({ volumes: [{ name: "data", persistentVolumeClaim: { claimName } }] });

export const service = (spec: object): Manifest => manifest("v1", "Service", "web", { spec: { ports: [{ port: 80 }], ...spec } });

/**
 * A quota, then a Deployment that it restricts. Admission enforces what the quota's status says, which its controller writes some time after the
 * creation; the Deployment's pods would be allowed until then.
 */
export const restrictedDeployment = (
  situation: string,
  quota: string,
  hard: Readonly<Record<string, string>>,
): Pick<Situation, "objects" | "steps"> => ({
  objects: [manifest("v1", "ResourceQuota", quota, { spec: { hard } })],
  steps: [
    {
      of: `/api/v1/namespaces/why-${situation}/resourcequotas/${quota}`,
      status: { hard, used: Object.fromEntries(Object.keys(hard).map((resource) => [resource, "0"])) },
    },
    { make: deployment() },
  ],
});

export const keep = { finalizers: ["example.com/keep"] };

export const release = (object: string): readonly string[] => [
  "patch",
  ...object.split("/"),
  "--type=merge",
  "-p",
  '{"metadata":{"finalizers":null}}',
];
