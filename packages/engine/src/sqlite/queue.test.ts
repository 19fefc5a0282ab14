import { describeQueue } from '../conformance/describe-queue.ts'
import { makeSqliteEngine } from './under-test.ts'

describeQueue(makeSqliteEngine)
