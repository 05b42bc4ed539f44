import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

/** Rethrows errors of `check` as ConfigErrors, which are shown to the user in one line. @throws ConfigError */
export function asConfigError<T>(check: () => T): T {
  try {
    return check();
  } catch (err) {
    throw new ConfigError(messageOf(err));
  }
}
