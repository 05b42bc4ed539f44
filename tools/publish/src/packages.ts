/** A package that is published as one bundle without dependencies. */
export interface PublishedPackage {
  /** Folder below `packages/`. */
  readonly folder: string;
  readonly description: string;
  /** Public modules: the source file by subpath. */
  readonly entries: Readonly<Record<string, string>>;
  /** Executables: the source file by name. */
  readonly programs: Readonly<Record<string, string>>;
  /** The oldest supported Node version. */
  readonly node: 22 | 26;
  /** Sources that run first: polyfills of standard methods that this Node lacks. */
  readonly inject: readonly string[];
  /** True when it contains the page served at /ui. */
  readonly hasUi: boolean;
}

const usual = { entries: { ".": "index" }, node: 26, inject: [], hasUi: false } as const;

export const publishedPackages: readonly PublishedPackage[] = [
  {
    ...usual,
    folder: "testing",
    description:
      "A Kubernetes 1.23 cluster inside a test's process: API server, controllers, scheduler, fake nodes, virtual time",
    entries: { ".": "index", "./resources": "resources", "./kinds": "kinds" },
    programs: { "coxswain-testing": "cli" },
    node: 22,
    inject: ["packages/testing/src/standard-methods.ts"],
  },
  {
    ...usual,
    folder: "apimachinery",
    description: "Client, informers and controllers for Kubernetes 1.23",
    entries: { ".": "index", "./resources": "objects/schema/kinds/resources", "./kinds": "kinds" },
    programs: {},
  },
  {
    ...usual,
    folder: "apiserver",
    description: "kube-apiserver of Kubernetes 1.23, as a program and in a process",
    programs: { "kube-apiserver": "main" },
    hasUi: true,
  },
  {
    ...usual,
    folder: "controller-manager",
    description: "kube-controller-manager of Kubernetes 1.23, as a program and in a process",
    programs: { "kube-controller-manager": "main" },
  },
  {
    ...usual,
    folder: "scheduler",
    description: "kube-scheduler of Kubernetes 1.23, as a program and in a process",
    programs: { "kube-scheduler": "main" },
  },
  {
    ...usual,
    folder: "node-agent",
    description: "The kubelet of Kubernetes 1.23, as a program and in a process",
    programs: { kubelet: "main" },
  },
];
