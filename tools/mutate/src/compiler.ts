import type { SourceFile } from "typescript/unstable/ast";
import { API, type Snapshot } from "typescript/unstable/sync";

/** Diagnostics for unused names, which are consequences of a mutation and do not make it invalid. */
const unused: ReadonlySet<number> = new Set([6133, 6138, 6192, 6196, 6198, 6199, 6205]);

/** The TypeScript compiler with replaceable file contents; files on disk are not changed. */
export class Compiler {
  readonly #api: API;
  readonly #texts = new Map<string, string>();
  #snapshot: Snapshot;

  /** @param config path of a tsconfig.json */
  constructor(root: string, config: string) {
    this.#api = new API({ cwd: root, fs: { readFile: (name) => this.#texts.get(name) } });
    this.#snapshot = this.#api.updateSnapshot({ openProjects: [config] });
  }

  /** @param path absolute */
  sourceFile(path: string): SourceFile {
    const file = this.#program.getSourceFile(path);
    if (file === undefined) throw new Error(`${path} is not among the files that the compiler reads`);
    return file;
  }

  /** Diagnostics for a file with other contents; the replacement ends with the call. */
  faultsOf(path: string, text: string): string[] {
    this.#replace(path, text);
    try {
      const found = [...this.#program.getSyntacticDiagnostics(path), ...this.#program.getSemanticDiagnostics(path)];
      return found.filter(({ code }) => !unused.has(code)).map(({ text }) => text);
    } finally {
      this.#replace(path, undefined);
    }
  }

  close(): void {
    this.#api.close();
  }

  get #program() {
    const [project] = this.#snapshot.getProjects();
    if (project === undefined) throw new Error("the compiler found no project");
    return project.program;
  }

  #replace(path: string, text: string | undefined): void {
    if (text === undefined) this.#texts.delete(path);
    else this.#texts.set(path, text);
    const before = this.#snapshot;
    this.#snapshot = this.#api.updateSnapshot({ fileChanges: { changed: [path] } });
    before.dispose();
  }
}
