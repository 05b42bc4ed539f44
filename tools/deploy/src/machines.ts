/** `coxswain init|join|reset|token|etcd|upgrade`: sets machines up. The launcher gives the command's name as the first argument. */
import { join } from "node:path";
import { runMachines } from "@coxswain/machines/main";

// `lib` of an archive, or `src` of a checkout: beside it are `bin` and `systemd`.
process.exitCode = await runMachines({ home: join(import.meta.dirname, "..") }, process.argv.slice(2));
