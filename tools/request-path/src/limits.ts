export interface Limit {
  readonly files: number;
  readonly modules: number;
}

/**
 * What a request may run at most, by its name in `requests.ts`. Lower a limit when its figure falls; each leaves room for a dozen
 * files. The aim is 100 files and 15 modules for a create, 50 files for a get.
 */
export const limits: Readonly<Record<string, Limit>> = {
  "create a ConfigMap": { files: 157, modules: 30 },
  "get a ConfigMap": { files: 99, modules: 25 },
  "list ConfigMaps": { files: 107, modules: 26 },
  "patch a ConfigMap": { files: 170, modules: 30 },
  "create a Pod": { files: 202, modules: 32 },
  "create a custom object": { files: 167, modules: 32 },
  "one more watcher": { files: 18, modules: 8 },
};
