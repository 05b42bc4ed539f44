export interface Limit {
  readonly files: number;
  readonly modules: number;
}

/**
 * What a request may run at most, by its name in `requests.ts`. Lower a limit when its figure falls; each leaves room for a dozen
 * files. The aim is 100 files and 15 modules for a create, 50 files for a get.
 */
export const limits: Readonly<Record<string, Limit>> = {
  "create a ConfigMap": { files: 108, modules: 28 },
  "get a ConfigMap": { files: 61, modules: 23 },
  "list ConfigMaps": { files: 68, modules: 24 },
  "patch a ConfigMap": { files: 123, modules: 28 },
  "create a Pod": { files: 151, modules: 30 },
  "create a custom object": { files: 120, modules: 30 },
  "one more watcher": { files: 10, modules: 6 },
};
