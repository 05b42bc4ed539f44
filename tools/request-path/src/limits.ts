export interface Limit {
  readonly files: number;
  readonly modules: number;
}

/** What a request may run at most, by its name in `requests.ts`. Lower a limit when its figure falls; each leaves room for a few files. */
export const limits: Readonly<Record<string, Limit>> = {
  "create a ConfigMap": { files: 175, modules: 30 },
  "get a ConfigMap": { files: 100, modules: 25 },
  "list ConfigMaps": { files: 110, modules: 26 },
  "patch a ConfigMap": { files: 190, modules: 30 },
  "create a Pod": { files: 215, modules: 32 },
  "create a custom object": { files: 185, modules: 32 },
  "one more watcher": { files: 18, modules: 8 },
};
