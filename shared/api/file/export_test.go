package file

var RangeBytes = rangeBytes
