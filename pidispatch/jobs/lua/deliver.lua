-- deliver(forge, delivery, verdict): log a delivery that made no job
log_delivery(ARGV[2], ARGV[3], ARGV[4], '')
return 'won'
