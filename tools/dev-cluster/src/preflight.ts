import { accessSync, constants, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { makeFolderSync } from "@coxswain/apimachinery/files/make-folder";
import { Failure } from "./failure.ts";
import { type PortName, portNames, type Settings } from "./settings.ts";

const neededBytes = 512 << 20;

/** Finds what would make the start fail half-way, and names it. */
export async function checkMachine(settings: Settings, portsInUse: ReadonlySet<PortName>): Promise<void> {
  try {
    makeFolderSync(settings.state, 0o711);
    accessSync(settings.state, constants.W_OK);
  } catch (err) {
    throw new Failure(`cannot write to ${settings.state}: ${(err as Error).message}`);
  }
  const disk = statfsSync(settings.state);
  if (disk.bavail * disk.bsize < neededBytes) {
    throw new Failure(
      `the disk of ${settings.state} has ${Math.floor((disk.bavail * disk.bsize) / (1 << 20))} MiB left; 512 MiB are needed`,
    );
  }
  for (const name of portNames) {
    const port = settings.ports[name];
    if (!Number.isInteger(port) || port < 1 || port > 65_535)
      throw new Failure(`COX_PORT_${name.toUpperCase()} is not a port number`);
    if (!settings.asRoot && name.startsWith("kubelet")) continue;
    if (!portsInUse.has(name)) await checkPort(name, port);
  }
}

async function checkPort(name: PortName, port: number): Promise<void> {
  for (const address of ["127.0.0.1", "0.0.0.0"]) {
    await new Promise<void>((resolve, reject) => {
      const server = createServer();
      server.once("error", (err: NodeJS.ErrnoException) =>
        reject(
          new Failure(
            err.code === "EADDRINUSE"
              ? `port ${port} is taken by another program; end it, or set COX_PORT_${name.toUpperCase()} to a free one`
              : `cannot listen on port ${port}: ${err.message}`,
          ),
        ),
      );
      server.listen(port, address, () => server.close(() => resolve()));
    });
  }
}
