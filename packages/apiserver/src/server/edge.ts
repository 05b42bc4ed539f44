/**
 * The pages beside the API: health, metrics, the keys of service-account tokens, profiling. Express serves those that
 * are not asked for in a hurry; health is asked for all the time and is direct.
 */
import { pprofRouter } from "@coxswain/apimachinery/serving/pprof";
import { expressHandler } from "@coxswain/apimachinery/serving/express-handler";
import { type Health, newHealth } from "@coxswain/apimachinery/serving/health";
