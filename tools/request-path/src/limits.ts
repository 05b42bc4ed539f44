export interface Limit {
  readonly files: number;
  readonly modules: number;
  /** Number of entries into files that the stages have left before. */
  readonly returns?: number;
}

/**
 * Maximum figures of a request, by its name in `requests.ts`. Lower a limit when its figure falls. docs/developing/lives.md explains
 * the remaining returns.
 */
export const limits: Readonly<Record<string, Limit>> = {
  "create a ConfigMap": { files: 100, modules: 15, returns: 4 },
  "get a ConfigMap": { files: 50, modules: 13, returns: 0 },
  "list ConfigMaps": { files: 60, modules: 13 },
  "patch a ConfigMap": { files: 116, modules: 15 },
  "create a Pod": { files: 146, modules: 18 },
  "create a custom object": { files: 113, modules: 17 },
  "one more watcher": { files: 14, modules: 6 },
};
