import { describeKvModel } from '../conformance/describe-kv-model.ts'
import { describeLogModel } from '../conformance/describe-log-model.ts'
import { describeQueueModel } from '../conformance/describe-queue-model.ts'
import { makeSqliteEngine } from './under-test.ts'

describeLogModel(makeSqliteEngine)
describeQueueModel(makeSqliteEngine)
describeKvModel(makeSqliteEngine)
